// Something is done to many jobs: it is asked before, with how many they are, and done in steps that can be stopped.
import { api } from './api.js';
import { count, cut, jobs as inJobs } from './format.js';
import { open, toast, useForm } from './forms.js';
import { Badge } from './parts.js';
import { countStates, inWords, isCounted, narrowed, queryOf } from './query.js';
import { html, useEffect, useRef, useState } from './view.js';

const ANSWERS_NO = new Set(['NOTFOUND', 'CONFLICT']);

/** Does it to at most 1000 jobs → how many it was done to. */
async function toIds(action, ids, values = {}) {
  const body = action.change
    ? { jobs: ids.map((id) => ({ id, ...action.change(values) })) }
    : { ids, ...(action.options?.(values) || {}) };
  const answer = await api.post(action.change ? '/jobs/change' : action.path || action.idsPath, body);
  return answer.jobs.filter((state) => !ANSWERS_NO.has(state)).length;
}

// -- how many they are --------------------------------------------------------------------------------

const PAGE = 1000;
const COUNTED = 20000; // more than these are "at least" so many

/** Pages of jobs, briefly; null at the end when there are more than `most`. */
async function* pagesOf(where, { signal, most = Infinity, size = PAGE } = {}) {
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

/** Queues know how many jobs they have in each state: then nothing need be looked at. Else null. */
async function known(where, signal) {
  const sums = isCounted(where) ? await countStates(where.queue, signal) : null;
  return sums ? where.status.reduce((sum, state) => sum + sums[state], 0) : null;
}

/** Counts what matches: tell({sum, first: some of them, isEnd: counting is over, isAll: there are no more}). */
async function measure(where, { signal, show, tell }) {
  const sure = await known(where, signal);
  let sum = 0;
  let first = [];
  let isAll = true;
  for await (const page of pagesOf(where, {
    signal,
    most: sure === null ? COUNTED : show,
    size: sure === null ? PAGE : 20,
  })) {
    if (!page) {
      isAll = sure !== null;
      break;
    }
    sum += page.length;
    first = first.concat(page).slice(0, show);
    tell({ sum: sure ?? sum, first, isEnd: false, isAll: false });
  }
  tell({ sum: sure ?? sum, first, isEnd: true, isAll });
}

// -- step by step -------------------------------------------------------------------------------------

const AT_ONCE = 200;
/** report: {isOver(), step(how far, how many)} → how many it was done to */
async function toAllIds(action, ids, values, report) {
  let did = 0;
  for (let at = 0; at < ids.length && !report.isOver(); at += AT_ONCE) {
    const some = ids.slice(at, at + AT_ONCE);
    did += await toIds(action, some, values);
    report.step(at + some.length, did);
  }
  return did;
}

/** Does what a path of the API does to all that match → to how many. */
export async function toAllThatMatch(path, body, report) {
  let [cursor, did] = ['', 0];
  do {
    const answer = await api.post(path, { ...body, count: AT_ONCE, ...(cursor ? { cursor } : {}) });
    cursor = answer.cursor;
    did += answer.changed;
    report?.step(did);
  } while (cursor && !report?.isOver());
  return did;
}

// -- asked before -------------------------------------------------------------------------------------

const SHOWN = 5;

/** Some of the jobs, and how many more there are. */
const Sample = ({ rows, total }) =>
  rows.length > 0 &&
  html`<ul class="sample">
    ${rows.map(
      (job) =>
        html`<li><${Badge} word=${job.status} /> <code>${job.id}</code> ${cut(job.name, 60)}${
          job.message ? html`<span class="muted"> ${cut(job.message, 80)}</span>` : null
        }</li>`,
    )}
    ${total > rows.length ? html`<li class="muted">… and ${count(total - rows.length)} more</li>` : null}
  </ul>`;

/**
 * The dialog. `all`: whether no filter is set: then one types what is to be done to every job there is. `others`: how
 * many of those chosen it is not for. `end`: as far as it came, {did, isOver, running}, also when it is closed.
 */
function Mass({ action, where, rows, others, all, end, close }) {
  const [counted, setCounted] = useState({ sum: rows.length, first: rows.slice(0, SHOWN), isEnd: !where, isAll: true });
  const [far, setFar] = useState(null); // {far, words} while it is done
  const [problem, setProblem] = useState('');
  const counting = useRef(new AbortController());
  useEffect(() => {
    const { signal } = counting.current;
    const wrong = (why) => why.name !== 'AbortError' && setProblem(why.message);
    if (where) measure(where, { signal, show: SHOWN, tell: setCounted }).catch(wrong);
    return () => {
      end.isOver = true;
      counting.current.abort();
    };
  }, []);
  const { sum, first, isEnd, isAll } = counted;
  const run = async (values) => {
    const report = {
      isOver: () => end.isOver,
      step: (far, did = far) => setFar({ far, words: `${inJobs(did)} ${action.did}…` }),
    };
    try {
      end.did = await (where
        ? toAllThatMatch(action.path, { where, ...(action.options?.(values) || {}) }, report)
        : toAllIds(
            action,
            rows.map((job) => job.id),
            values,
            report,
          ));
    } catch (why) {
      end.did = 0; // some may be done already: whoever asked has to look again
      if (end.isOver) toast(why.message, 'error');
      setProblem(why.message);
      return;
    }
    const left = where || end.isOver ? 0 : rows.length - end.did;
    const how = end.isOver ? '; then it was stopped' : '';
    const rest = left > 0 ? ` ${count(left)} had moved on, or are protected.` : '';
    toast(`${inJobs(end.did)} ${action.did}${how}.${rest}`, end.did || end.isOver ? 'ok' : 'error');
    close();
  };
  const typed = {
    name: 'typed',
    required: true,
    label: `No filter is set: this means every job there is. To confirm, type “${action.label}”`,
  };
  const fields = [...(action.fields || []), ...(all && action.danger ? [typed] : [])];
  const form = useForm(fields, async ({ typed: word, ...values }) => {
    if (word !== undefined && word.trim().toLowerCase() !== action.label.toLowerCase())
      throw Object.assign(new Error(`expected ${action.label}`), { field: 'typed' });
    counting.current.abort();
    setFar({ far: 0, words: 'Starting…' });
    end.running = run(values);
  });
  const number = isEnd ? `${isAll ? '' : 'At least '}${inJobs(sum)}.` : `Counting… ${sum ? inJobs(sum) : ''}`;
  const left = others
    ? ` ${count(others)} of those chosen ${others === 1 ? 'is' : 'are'} in another state and left alone.`
    : '';
  const also = action.path && action.danger ? ' Also those that come to match while it is done.' : '';
  return html`<form novalidate ref=${form.place} onSubmit=${form.send}>
    <p>${action.what}</p>
    ${where ? html`<p class="muted">Only: ${inWords(where).join('; ')}.${also}</p>` : null}
    ${
      far
        ? html`<progress max=${Math.max(sum, 1)} value=${Math.min(far.far, sum)} aria-label=${action.label}></progress><p role="status">${far.words}</p>`
        : html`<p class="mass-count" role="status">${number}${left}</p><${Sample} rows=${first} total=${sum} />`
    }
    <div hidden=${Boolean(far)}>${fields.map((spec, i) => form.view(spec, i === 0))}</div>
    ${form.problem}<p class="problem" role="alert" hidden=${!problem}>${problem}</p>
    <div class="buttons"><button type="button" autofocus=${!fields.length} onClick=${close}>${far && !problem ? 'Stop' : 'Close'}</button>
      <button type="submit" class=${action.danger ? 'danger' : 'primary'} disabled=${!isEnd || !sum || Boolean(far)}>
        ${action.label}: ${isEnd && !isAll ? `${count(sum)} and more` : inJobs(sum)}</button></div></form>`;
}

/** target: {ids, rows} or {where} → a promise: how many were changed; undefined when it was given up. */
export async function mass(action, target) {
  const where = target.where && narrowed(target.where, action.states);
  const rows = target.rows?.filter((job) => action.states.includes(job.status)) || [];
  if (target.where ? !where : !rows.length) {
    toast(`None of them can be used with “${action.label}”: that is for ${action.states.join(', ')}.`, 'error');
    return undefined;
  }
  const whom = where ? 'all that match' : rows.length === 1 ? 'one job' : `${count(rows.length)} chosen jobs`;
  const others = where ? 0 : target.rows.length - rows.length;
  const all = where && !Object.keys(target.where).length;
  const end = { did: undefined, isOver: false, running: null };
  const view = ({ close }) =>
    html`<${Mass} action=${action} where=${where} rows=${rows} others=${others} all=${all} end=${end} close=${close} />`;
  await open(`${action.label}: ${whom}`, view, { wide: true });
  await end.running; // closed in the middle: the step under way is waited for
  return end.did;
}
