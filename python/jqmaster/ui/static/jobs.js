// Jobs by what they are: a line and a state in the address; and acting on one, some, or all that match.

import { all, api, boundTo, every, may, path, stringify, withQuery } from './api.js';
import { brief, count, cut, duration, jobs as inJobs, moment, now } from './format.js';
import { groups, names, queues, tags, workers } from './names.js';
import {
  Ago,
  Badge,
  FilterBar,
  Head,
  Loaded,
  linked,
  Pager,
  Problem,
  Progress,
  STATES,
  Table,
  toQueue,
  Until,
  usePages,
  WAITING,
  Worker,
} from './parts.js';
import { ACTIONS, completions, countStates, isCounted, lineOf, mass, queryOf, whereOf } from './query.js';
import { html, Link, same, setQuery, useData, useEffect, useQuery, useState } from './view.js';

const PAGE = 50;
const TIMES = 10;
const PREVIEWED = 600; // bytes of an argument that is shown in the list
const TABS = [['', 'All'], ...STATES.map((state) => [state, state]), [WAITING.join(','), 'waiting']];

const LINE = {
  name: 'q',
  label: 'Find',
  type: 'search',
  placeholder: 'customer.id:acme worker:mail-1 slower:30s status:error,done "some text"',
  suggest: (text) =>
    completions(text, {
      queue: queues,
      name: names,
      tag: tags,
      group: groups,
      worker: workers,
      status: async (state) => STATES.filter((word) => word.startsWith(state)),
    }),
};

// -- a job in the list --------------------------------------------------------------------------------

function When({ job }) {
  if (job.ended_ms) return html`<${Ago} ms=${job.ended_ms} />`;
  if (job.status === 'running') return html`<${Ago} ms=${job.started_ms} />`;
  if (job.due_ms) return html`due <${Until} ms=${job.due_ms} />`;
  return html`<${Ago} ms=${job.created_ms} />`;
}

/** What few jobs have: more than one attempt, a priority. */
const oddities = ({ attempt, priority }) =>
  [attempt > 1 ? `attempt ${count(attempt)}` : '', priority ? `priority ${priority}` : ''].filter(Boolean).join(', ');

/** How long it ran, or runs. */
function took(job) {
  const end = job.status === 'running' ? now() : job.ended_ms;
  return job.started_ms === undefined || end === undefined ? '' : duration(Math.max(0, end - job.started_ms));
}

/** What it is about, in two lines: the argument as far as it is short, and what was said of it. */
function What({ job }) {
  const isKnown = job.argument !== undefined;
  const text = isKnown ? stringify(job.argument) : 'a long argument';
  return html`${
    job.argument === null
      ? null
      : html`<div class=${isKnown ? 'preview' : 'preview muted'} title=${isKnown ? cut(text, PREVIEWED) : ''}>${cut(text, 120)}</div>`
  }
    ${
      job.message && job.status !== 'done'
        ? html`<span class="said" title=${cut(job.message, 1000)}>${cut(job.message, 90)} </span>`
        : null
    }
    ${(job.tags || []).slice(0, 4).map((tag) => html`<span class="tag">${cut(tag, 30)}</span>`)}`;
}

const COLUMNS = [
  {
    title: 'Job',
    kind: 'wide',
    cell: (
      job,
    ) => html`<${Link} to=${path`/job/${job.id}`}>${cut(job.name, 70)}<//> <code class="muted hide-narrow">${job.id}</code>
      <span class="muted odd">${oddities(job)}</span>`,
  },
  {
    title: 'Queue',
    hide: 'narrow',
    kind: 'wide',
    cell: (job) => linked([job.queue], toQueue),
  },
  { title: 'State', cell: (job) => html`<${Badge} word=${job.status} /><${Progress} job=${job} />` },
  { title: 'Time', kind: 'time', cell: (job) => html`<${When} job=${job} />` },
  { title: 'Took', kind: 'number', tip: 'From its last start to its end, or until now', cell: took },
  {
    title: 'Worker',
    hide: 'narrow',
    tip: 'Who runs it, or ran it last',
    cell: (job) => job.worker_id && html`<${Worker} id=${job.worker_id} size=${24} />`,
  },
  { title: 'Argument, error, tags', kind: 'wide', hide: 'narrow', cell: (job) => html`<${What} job=${job} />` },
];

// -- states -------------------------------------------------------------------------------------------

const sumOf = (sums, states) => states.reduce((sofar, state) => sofar + sums[state], 0);

/** States with their numbers, as far as queues know them; with other filters nobody counts. */
function States({ sums, where, filters }) {
  const isKnown = sums && isCounted(where);
  return html`<div class="states" role="navigation" aria-label="States">${TABS.map(
    ([value, text]) => html`<${Link} to=${withQuery('/jobs', { ...filters, at: '', status: value })}
      class=${value && !value.includes(',') ? `state is-${value}` : 'state'}
      aria-current=${(filters.status || '') === value ? 'true' : undefined}>${text}${
        isKnown ? html`<b>${brief(sumOf(sums, value ? value.split(',') : STATES))}</b>` : null
      }<//>`,
  )}</div>`;
}

// -- the list -----------------------------------------------------------------------------------------

/** What can be done to those that are chosen, or to all that match. */
function Acting({ chosen, filters, run, clear }) {
  const states = chosen.length ? new Set(chosen.map((job) => job.status)) : null;
  const wanted = filters.status?.split(',');
  const fitting = ACTIONS.filter(
    (action) =>
      may('operator') &&
      (states || action.path) &&
      action.states.some((state) => (states ? states.has(state) : !wanted || wanted.includes(state))),
  );
  return html`<div class=${`acting ${states ? 'has-chosen' : ''}`} role="toolbar" aria-label="With these jobs">
    <b>${states ? `${inJobs(chosen.length)} chosen:` : 'All that match:'}</b>
    ${fitting.map(
      (action) => html`<button type="button" class=${action.danger ? 'small danger' : 'small'} title=${action.what}
        onClick=${() => run(action)}>${action.label}…</button>`,
    )}
    ${
      states
        ? html`<button type="button" class="quiet small" onClick=${clear}>Choose none</button>`
        : html`<span class="muted">or choose some below, in order of queue and state</span>`
    }
  </div>`;
}

/** While somebody chooses, or marks text to copy it, rows do not move under the hand. */
const isBusy = () => document.querySelector('.acting.has-chosen, dialog[open]') || !getSelection().isCollapsed;

/** One page → {rows, cursor, looked}: one request looks at some hundred jobs, with few that match it takes several. */
async function look(where, cursor, signal) {
  const rows = [];
  let at = cursor;
  let looked = 0;
  for (let times = 0; times < TIMES && (!times || at) && rows.length < PAGE; times += 1) {
    const more = { newest: 1, brief: 1, argument_max: PREVIEWED, looked: 1, count: PAGE - rows.length, cursor: at };
    const page = await api.get('/jobs', { ...queryOf(where), ...more }, { signal });
    rows.push(...page.jobs);
    at = page.cursor;
    looked += page.looked;
  }
  return { rows, cursor: at, looked };
}

function Found({ where, filters, counted }) {
  const { q, status, from, to } = filters;
  const key = same([q, status, from, to]);
  const [chosen, setChosen] = useState(new Map());
  const chooseNone = () => setChosen(new Map());
  useEffect(chooseNone, [key]);
  const load = async (cursor, signal) => ({ ...(await look(where, cursor, signal)), key });
  const { data = { rows: [], looked: 0 }, problem, reload, pager } = usePages(load, { deps: [key] });
  const both = () => Promise.all([reload(), counted.reload()]);
  useEffect(
    () =>
      every(
        () => 5000,
        async () => !isBusy() && (await both()).every(Boolean),
      ),
    [key],
  );
  const { rows, cursor, looked } = data;
  const run = async (action) => {
    const jobs = [...chosen.values()];
    const did = await mass(action, jobs.length ? { ids: [...chosen.keys()], rows: jobs } : { where });
    if (did === undefined) return;
    chooseNone();
    await both();
  };
  const byId = new Map(rows.map((job) => [job.id, job]));
  const isOld = data.key !== key;
  const empty = isOld
    ? html`<div class="empty">${problem ? null : 'Loading …'}</div>`
    : html`<div class="empty">No job matches. <${Link} to="/jobs">All jobs<//> · <${Link} to="/enqueue">Enqueue one<//></div>`;
  return html`<${Acting} chosen=${[...chosen.values()]} filters=${filters} run=${run} clear=${chooseNone} />
    ${problem && isOld ? html`<${Problem} problem=${problem} retry=${reload} />` : null}
    <div class="jobs-list"><${Table} label="Jobs" rows=${rows} rowKey=${(job) => job.id} columns=${COLUMNS} empty=${empty}
        isOld=${isOld} chosen=${new Set(chosen.keys())}
        onChoose=${(ids) => setChosen((old) => new Map([...ids].map((id) => [id, byId.get(id) || old.get(id)])))}>
        <${Pager} of=${pager}>${!rows.length && cursor ? 'Nothing found so far; there is more to look at' : null}<//><//></div>
    ${
      isOld || isCounted(where) || where.tag || where.group
        ? null
        : html`<p class="muted scan" role="status">Looked at ${cursor ? '' : 'all '}${inJobs(looked)}.</p>`
    }`;
}

function Range({ where: { from_ms, to_ms } }) {
  return html`<p class="muted">${`Only jobs that were enqueued from ${moment(from_ms)} to ${moment(to_ms)}, as the time range says. `}
    <button type="button" class="inline" onClick=${() => setQuery({ at: '', from: '', to: '' })}>Any time</button></p>`;
}

/** A key that is bound to queues lists one of them at a time. */
function ChooseQueue() {
  const state = useData((signal) => all('/queues', {}, { signal }));
  return html`<p class="muted">The key is bound to queues (${boundTo().join(', ')}): choose one.</p>
    <${Loaded} of=${state}>${({ entries }) =>
      linked(
        entries.map(({ name }) => name),
        (queue) => withQuery('/jobs', { queue }),
      )}<//>`;
}

function Listed({ where, filters }) {
  const counted = useData((signal) => countStates(where.queue, signal), { deps: [where.queue, filters.status] });
  return html`<${States} sums=${counted.data} where=${where} filters=${filters} />
    ${filters.from && filters.to ? html`<${Range} where=${where} />` : null}
    <${Found} where=${where} filters=${filters} counted=${counted} />`;
}

/** `where` of the filters, or {wrong: why they say none}. */
function read(filters) {
  try {
    return { where: whereOf(filters) };
  } catch (problem) {
    return { wrong: problem.message };
  }
}

export function Jobs() {
  const [filters, change] = useQuery();
  const line = lineOf(filters);
  // What a link says stands in the line, where it is seen and can be changed.
  useEffect(() => {
    if (line !== (filters.q || ''))
      change({ q: line, queue: '', name: '', tag: '', group: '', message: '', worker: '' });
  }, [line]);
  const { where, wrong } = read(filters);
  return html`<${Head} title="Jobs" actions=${may('pusher') && html`<${Link} class="button" to="/enqueue">Enqueue…<//>`} />
    <div class="query-line"><${FilterBar} fields=${[LINE]} /></div>
    ${
      wrong
        ? html`<p class="problem" role="alert">${wrong}</p>`
        : boundTo() && !where.queue
          ? html`<${ChooseQueue} />`
          : html`<${Listed} where=${where} filters=${{ ...filters, q: line }} />`
    }`;
}
