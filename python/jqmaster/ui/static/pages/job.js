// A job: what it is, what became of it, why it waits, and what can be done about it.
import { api, path } from '../api.js';
import { badge } from '../components/badge.js';
import { confirm, form } from '../components/dialog.js';
import { act, failed } from '../components/toast.js';
import { tree } from '../components/tree.js';
import { button, fill, h } from '../dom.js';
import { ago, count, cut, duration } from '../format.js';
import { actionOf } from '../jobs/actions.js';
import { exactJob } from '../jobs/exact.js';
import { facts } from '../jobs/facts.js';
import { graph, SHOWN } from '../jobs/graph.js';
import { exactParse, jsonProblem } from '../jobs/jsontext.js';
import { mass } from '../jobs/mass.js';
import { timeline } from '../jobs/timeline.js';
import { ENDED, WAITING } from '../jobs/where.js';
import { why } from '../jobs/why.js';
import { every, follow } from '../live.js';
import { link, navigate, withQuery } from '../router.js';

const LARGE = 200000; // an argument of so many characters is not fetched again and again

const section = (title, ...content) => h('section', { class: 'panel', 'aria-label': title }, h('h2', {}, title), content);

function progress(job) {
  if (job.progress === undefined && !job.progress_message) return null;
  // A worker may count to 1, to 100, or to what it likes: only the first is surely a share.
  const most = job.progress > 1 ? 100 : 1;
  const isShare = job.progress >= 0 && job.progress <= 100;
  const text = most === 1 && isShare ? `${Math.round(job.progress * 100)} %` : String(job.progress ?? '');
  return h('div', { class: 'progress-box' }, isShare ? h('progress', { max: most, value: job.progress, 'aria-label': 'Progress' }) : null,
    h('span', {}, text, job.progress_message ? ` · ${cut(job.progress_message, 300)}` : ''));
}

function argumentOf(text) {
  const at = jsonProblem(text);
  if (at) throw Object.assign(new Error(`line ${at.line}, column ${at.column}: ${at.message}`), { field: 'argument' });
  return exactParse(text);
}

/** What can be changed, as a form. */
async function changeForm(id) {
  const { job, argument } = await exactJob(id);
  const waits = WAITING.includes(job.status);
  const fields = [
    ...(waits ? [
      { name: 'priority', label: 'Priority', type: 'number', value: String(job.priority), hint: 'The smaller runs first.' },
      { name: 'delay', label: 'Ready in', unit: 's from now', type: 'number', hint: 'Empty: as it is. 0: now.' },
      { name: 'max_retry', label: 'Retries at most', type: 'number', value: String(job.max_retry) },
      { name: 'timeout', label: 'Lease', unit: 's', type: 'number', value: String(job.timeout) },
      { name: 'argument', label: 'Argument', value: argument, rows: 8, hint: 'JSON.' }] : []),
    { name: 'tags', label: 'Tags', type: 'list', value: job.tags || [], hint: 'With commas between.' }];
  const before = { priority: job.priority, max_retry: job.max_retry, timeout: job.timeout };
  return form({
    title: `Change ${cut(job.name, 60)}`, fields, wide: true,
    body: waits ? [] : ['Of a job that runs or has ended, only tags can be changed.'],
    submit: async (values) => {
      const changes = {};
      for (const [name, value] of Object.entries(before)) if (values[name] !== undefined && values[name] !== value) changes[name] = values[name];
      if (values.delay !== undefined) changes.delay = values.delay;
      if (values.argument !== undefined && values.argument !== argument) changes.argument = argumentOf(values.argument);
      const tags = values.tags || [];
      if (tags.join('\n') !== (job.tags || []).join('\n')) changes.tags = tags;
      if (Object.keys(changes).length) await api.patch(path`/job/${job.id}`, changes);
      return changes;
    },
  });
}

const plain = (_key, value) => (typeof value === 'bigint' ? `${value}n` : value);

function actionsOf(job, changed, isProtected) {
  const one = (id) => () => mass(actionOf(id), { ids: [job.id], rows: [job] }).then((did) => {
    if (did === undefined) return;
    if (id === 'discard' && did) navigate('/jobs');
    else changed();
  });
  const at = (id) => actionOf(id).states.includes(job.status);
  const made = [];
  if (at('retry')) {
    made.push(button('Retry', async () => {
      if (await act(() => api.post(path`/job/${job.id}/retry`), 'It is in the queue again.')) changed();
    }, { class: 'primary' }));
  }
  if (at('run')) {
    made.push(button('Run now', async () => {
      if (await act(() => api.patch(path`/job/${job.id}`, { delay: 0 }), 'It does not wait for its time any longer.')) changed();
    }, { class: made.length ? '' : 'primary' }));
  }
  made.push(button('Change…', async () => {
    const changes = await changeForm(job.id).catch(failed);
    if (changes) changed();
  }));
  made.push(h('a', { class: 'button', href: `/ui${withQuery('/enqueue', { from: job.id })}` }, 'Enqueue again…'));
  if (at('kick')) {
    made.push(button('Take from worker…', async () => {
      const isSure = await confirm({ title: 'Take it from its worker?', action: 'Take from worker',
        body: ['It waits again and loses no retry. Its worker is told that it has lost it; what it did so far may happen twice.'] });
      if (isSure && await act(() => api.post(path`/job/${job.id}/kick`, {}), 'It waits in its queue again.')) changed();
    }));
  }
  if (at('cancel')) made.push(button('Cancel…', one('cancel'), { class: 'danger' }));
  if (at('discard')) made.push(button('Discard…', one('discard'), { class: 'danger' }));
  return made;
}

function failure(job) {
  if (job.status === 'done' || (!job.message && job.error === null && !job.reason)) return null;
  const { group } = job;
  return h('section', { class: 'panel failure', 'aria-label': 'Last failure' }, h('h2', {}, job.status === 'error' ? 'It failed for good' : 'Last failure'),
    h('p', { class: 'problem clip said-all' }, job.message || `reason: ${job.reason || 'not given'}`),
    h('p', { class: 'muted' }, `${job.retry_count} of ${job.max_retry + 1} attempts failed`, job.reason && job.reason !== 'other' ? ` · ${job.reason}` : '',
      group ? [' · group ', job.status === 'error' ? link(withQuery('/jobs', { group }), cut(group, 80)) : cut(group, 80)] : ''),
    job.error !== null && job.error !== undefined ? tree(job.error, 'Error') : null);
}

export async function render(view, params) {
  const { id } = params;
  const at = path`/job/${id}`;
  const others = new Map();
  const head = h('div', { class: 'head job-head' });
  const place = { progress: h('div', {}), why: h('div', {}), failure: h('div', {}), facts: h('div', {}), history: h('div', {}), graph: h('div', {}), values: h('div', { class: 'grid' }) };
  let job = null;
  let shownValues = '';
  let stopFollowing = null;
  let isOver = false;
  let isLarge = false;

  async function lookAround() {
    const ids = (job.depends || []);
    const open = new Set(job.waits_for || []);
    const wanted = [...ids].sort((a, b) => open.has(b) - open.has(a)).slice(0, SHOWN);
    await Promise.all(wanted.filter((one) => !ENDED.includes(others.get(one)?.status) || open.has(one)).map(async (one) => {
      others.set(one, await api.get(path`/job/${one}`).catch(() => null));
    }));
  }

  async function drawRest() {
    const [history, explanation] = await Promise.all([api.get(`${at}/history`), WAITING.includes(job.status) ? api.get(`${at}/explain`) : null, lookAround()]);
    fill(place.history, section('What happened', timeline(history, job)));
    if (job.depends?.length) fill(place.graph, section('What it waits for', graph(job, others)));
    const reasons = explanation ? why(explanation, job, others, refresh) : [];
    // Focus must not be lost to what is drawn anew.
    const held = place.why.contains(document.activeElement) ? document.activeElement.textContent : null;
    fill(place.why, reasons.length ? section('Why it waits', reasons) : null);
    if (held) [...place.why.querySelectorAll('a, button')].find((one) => one.textContent === held)?.focus();
  }

  function drawValues() {
    const key = JSON.stringify([job.argument, job.result, job.keep_result, job.status], plain);
    isLarge = key.length > LARGE;
    if (key === shownValues) return;
    shownValues = key;
    const hasResult = job.result !== null && job.result !== undefined;
    fill(place.values, section('Argument', tree(job.argument, 'Argument')),
      hasResult ? section('Result', tree(job.result, 'Result'))
        : job.status === 'done' ? section('Result', h('p', { class: 'muted' }, job.keep_result ? 'Nothing, or it is not kept any longer.' : 'Results of this job are not kept.')) : null);
  }

  function draw() {
    fill(head, h('h1', {}, cut(job.name, 200), ' ', badge(job.status)), h('div', { class: 'actions' }, actionsOf(job, refresh)),
      h('p', { class: 'muted job-line' }, h('code', {}, job.id), ' · in ', link(path`/queue/${job.queue}`, cut(job.queue, 80)), ' · enqueued ', ago(job.created_ms),
        job.started_ms && job.ended_ms ? ` · took ${duration(Math.max(0, job.ended_ms - job.started_ms))}` : '',
        job.attempt > 1 ? ` · ${count(job.attempt)} attempts` : ''));
    fill(place.progress, progress(job));
    fill(place.failure, failure(job));
    fill(place.facts, section('Facts', facts(job)));
    drawValues();
  }

  async function load() {
    job = await api.get(at);
    if (isOver) return;
    const held = head.contains(document.activeElement) ? document.activeElement.textContent : null;
    draw();
    if (held) [...head.querySelectorAll('a, button')].find((one) => one.textContent === held)?.focus();
    await drawRest();
    if (!isOver) listen();
  }

  async function refresh() {
    try {
      await load();
    } catch (problem) {
      if (isOver) return;
      if (problem.status === 404) fill(place.why, section('It is gone', h('p', {}, 'Its record is not there any longer. ', link('/jobs', 'All jobs'))));
      else failed(problem);
    }
  }

  /** Its transitions, as they happen, until it has ended. */
  function listen() {
    const isEnded = ENDED.includes(job.status);
    if (isEnded) {
      stopFollowing?.();
      stopFollowing = null;
    } else if (!stopFollowing) {
      stopFollowing = follow(`${at}/events`, (event) => {
        if (event.state !== job.status || event.attempt !== job.attempt) refresh();
      });
    }
  }

  view.append(head, place.progress, place.why, place.graph, place.failure, place.values, h('div', { class: 'grid job-grid' }, place.history, place.facts));
  for (const one of Object.values(place)) one.classList.add('place');
  await load();
  document.title = `${cut(job.name, 60)} · JQ`;
  // Progress and reasons to wait are no transitions: those are asked for.
  const stop = every(3000, async () => {
    if (!job || ENDED.includes(job.status) || document.querySelector('dialog[open]')) return;
    if (job.status === 'running' && !isLarge) await load();
    else if (job.status !== 'running') await drawRest();
  });
  return () => {
    isOver = true;
    stop();
    stopFollowing?.();
  };
}
