// Something is done to many jobs: first which and how many, then step by step, with a way to stop.
import { api } from '../api.js';
import { badge } from '../components/badge.js';
import { field, read } from '../components/field.js';
import { failed, toast } from '../components/toast.js';
import { button, fill, h } from '../dom.js';
import { count, cut, jobs as inJobs } from '../format.js';
import { toIds, toWhere } from './actions.js';
import { inWords, narrowed, queryOf } from './where.js';

const PAGE = 1000;
const COUNTED = 20000; // more than these are "at least" so many
const SHOWN = 5;
const AT_ONCE = 200;

/** Jobs that match, a page at a time, until `most`. */
async function* found(where, signal, most = Infinity, size = PAGE) {
  let cursor = '';
  let seen = 0;
  do {
    const page = await api.get('/jobs', { ...queryOf(where), brief: 1, count: size, cursor }, { signal });
    seen += page.jobs.length;
    yield page.jobs;
    cursor = page.cursor;
  } while (cursor && seen < most);
  if (cursor) yield null;
}

/** Queues know how many jobs they have in each state: then nothing need be looked at. */
async function known(where, signal) {
  if (Object.keys(where).some((name) => name !== 'status' && name !== 'queue')) return null;
  const sum = (queue) => where.status.reduce((all, state) => all + queue[state], 0);
  if (where.queue) return sum(await api.get(`/queue/${encodeURIComponent(where.queue)}`, {}, { signal }));
  let cursor = '';
  let all = 0;
  do {
    const page = await api.get('/queues', { count: PAGE, cursor }, { signal });
    all += page.queues.reduce((some, queue) => some + sum(queue), 0);
    cursor = page.cursor;
  } while (cursor);
  return all;
}

/** Counts what matches: tell(number, isAll, first jobs). */
async function measure(where, signal, tell) {
  const quick = await known(where, signal).catch((problem) => {
    if (problem.status !== 404) throw problem;
    return 0;
  });
  let sum = 0;
  let first = [];
  for await (const page of found(where, signal, quick === null ? COUNTED : SHOWN, quick === null ? PAGE : 20)) {
    if (!page) {
      tell(quick ?? sum, quick !== null, first, true);
      return;
    }
    sum += page.length;
    first = first.concat(page).slice(0, SHOWN);
    tell(quick ?? sum, false, first, false);
    if (quick !== null && first.length >= SHOWN) break;
  }
  tell(quick ?? sum, true, first, true);
}

function sample(rows, total) {
  if (!rows.length) return null;
  return h('ul', { class: 'sample' }, rows.map((job) => h('li', {}, badge(job.status), ' ', h('code', {}, job.id), ' ', cut(job.name, 60),
    job.message ? h('span', { class: 'muted' }, ` ${cut(job.message, 80)}`) : null)),
  total > rows.length ? h('li', { class: 'muted' }, `… and ${count(total - rows.length)} more`) : null);
}

async function doIds(action, ids, values, report) {
  let did = 0;
  for (let at = 0; at < ids.length && !report.isOver(); at += AT_ONCE) {
    const some = ids.slice(at, at + AT_ONCE);
    did += await toIds(action, some, values);
    report.step(at + some.length, did);
  }
  return did;
}

async function doWhere(action, where, values, report) {
  if (!action.path) {
    // What is changed may move to another place in the order: all are found before the first is touched.
    const ids = [];
    for await (const page of found(where, undefined)) {
      if (report.isOver()) return 0;
      ids.push(...page.map((job) => job.id));
      report.say(`Found ${count(ids.length)}…`);
    }
    return doIds(action, ids, values, report);
  }
  let cursor = '';
  let did = 0;
  do {
    const step = await toWhere(action, where, cursor, values);
    did += step.changed;
    cursor = step.cursor;
    report.step(did, did);
  } while (cursor && !report.isOver());
  return did;
}

/**
 * Asks, does it, and says so. target: {ids, rows} or {where}. → how many were changed; undefined when it was given up.
 */
export function mass(action, target) {
  const where = target.where && narrowed(target.where, action.states);
  const rows = target.rows?.filter((job) => action.states.includes(job.status)) || [];
  if (target.where ? !where : !rows.length) {
    toast(`None of them can be used with “${action.label}”: that is for ${action.states.join(', ')}.`, 'error');
    return Promise.resolve(undefined);
  }
  return new Promise((resolve) => {
    const stop = new AbortController();
    const number = h('p', { class: 'mass-count', role: 'status' }, 'Counting…');
    const preview = h('div', {});
    const fields = (action.fields || []).map(field);
    const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
    const typed = !target.where || !action.danger || Object.keys(target.where).length ? null
      : field({ name: 'typed', label: `No filter is set: this means every job there is. To confirm, type “${action.label}”`, required: true });
    const go = h('button', { type: 'submit', class: action.danger ? 'danger' : 'primary', disabled: true }, action.label);
    const leave = button('Close', () => dialog.close());
    const buttons = h('div', { class: 'buttons' }, leave, go);
    const title = `${action.label}: ${target.where ? 'all that match' : rows.length === 1 ? 'one job' : `${count(rows.length)} chosen jobs`}`;
    const words = where ? inWords(where) : [];
    const inner = h('form', { method: 'dialog', novalidate: true, on: { submit: (event) => {
      event.preventDefault();
      start();
    } } }, h('p', {}, action.what), words.length ? h('p', { class: 'muted' }, `Only: ${words.join('; ')}.`) : null,
    number, preview, fields.map((one) => one.element), typed?.element, problem, buttons);
    const dialog = h('dialog', { class: 'wide', 'aria-label': title }, h('h2', {}, title), inner);
    let total = rows.length;
    let did;
    let isRunning = false;

    const tell = (sum, isAll, first, isEnd) => {
      if (isRunning) return;
      total = sum;
      number.textContent = `${isEnd ? '' : 'Counting… '}${isEnd && !isAll ? 'At least ' : ''}${inJobs(sum)}${isEnd ? '.' : ''}`;
      fill(preview, sample(first, sum));
      go.disabled = !isEnd || !sum;
      go.textContent = `${action.label}: ${isEnd && !isAll ? `${count(sum)} and more` : inJobs(sum)}`;
    };

    async function start() {
      problem.hidden = true;
      let values;
      for (const one of fields) one.setProblem('');
      try {
        values = read(fields);
        if (typed && typed.value().toLowerCase() !== action.label.toLowerCase()) {
          throw Object.assign(new Error(`expected ${action.label}`), { field: 'typed' });
        }
      } catch (fault) {
        const at = [...fields, typed].find((one) => one?.name === fault.field);
        at?.setProblem(fault.message);
        at?.focus();
        return;
      }
      isRunning = true;
      stop.abort();
      const bar = h('progress', { max: Math.max(total, 1), 'aria-label': action.label });
      const text = h('p', { role: 'status' }, 'Starting…');
      let isOver = false;
      fill(preview, bar, text);
      number.hidden = true;
      go.disabled = true;
      for (const one of [...fields, typed]) one && (one.element.hidden = true);
      leave.textContent = 'Stop';
      const report = {
        isOver: () => isOver,
        say: (words) => { text.textContent = words; },
        step: (seen, done) => {
          bar.value = Math.min(seen, bar.max);
          text.textContent = `${inJobs(done)} ${action.did}…`;
        },
      };
      dialog.addEventListener('close', () => { isOver = true; });
      try {
        did = await (where ? doWhere(action, where, values, report) : doIds(action, rows.map((job) => job.id), values, report));
        const others = where ? 0 : rows.length - did;
        toast(`${inJobs(did)} ${action.did}${isOver ? '; then it was stopped' : ''}.${others > 0 && !isOver ? ` ${count(others)} had moved on, or are protected.` : ''}`,
          did || !total ? 'ok' : 'error');
        dialog.close();
      } catch (fault) {
        did ??= 0;
        if (!dialog.isConnected) failed(fault);
        text.textContent = '';
        problem.textContent = fault.message;
        problem.hidden = false;
        leave.textContent = 'Close';
      }
      finish?.();
    }
    let finish = null;

    dialog.addEventListener('mousedown', (event) => event.target === dialog && !isRunning && dialog.close());
    dialog.addEventListener('close', () => {
      stop.abort();
      dialog.remove();
      // Closed in the middle of a step: the answer is there when the step is.
      if (isRunning && did === undefined) finish = () => resolve(did);
      else resolve(did);
    });
    document.body.append(dialog);
    dialog.showModal();
    (fields[0] || leave).focus();
    if (where) measure(where, stop.signal, tell).catch((fault) => {
      if (fault.name === 'AbortError') return;
      problem.textContent = fault.message;
      problem.hidden = false;
    });
    else {
      tell(rows.length, true, rows.slice(0, SHOWN), true);
      if (target.rows.length > rows.length) {
        const others = target.rows.length - rows.length;
        number.textContent += ` ${count(others)} of those chosen ${others === 1 ? 'is' : 'are'} in another state and left alone.`;
      }
    }
  });
}
