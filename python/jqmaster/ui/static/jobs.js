// Jobs by what they are: filters in the address, a look inside, and acting on one, some, or all that match.
import { all, api, boundTo, every, may, only, path, stringify, withQuery } from './api.js';
import { brief, count, cut, duration, jobs as inJobs, moment, now } from './format.js';
import { groups, names, queues, tags } from './names.js';
import {
  Ago,
  Badge,
  Bulks,
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
  workers,
} from './parts.js';
import { ACTIONS, completions, FILTERS, isCounted, mass, queryOf, whereOf } from './query.js';
import { Tree } from './tree.js';
import { html, Link, same, setQuery, useData, useEffect, useQuery, useRef, useState } from './view.js';

const PAGE = 50;
const TIMES = 10;
const PREVIEWED = 600; // bytes of an argument that is shown in the list
const MERGED = 200; // queues; with more the engine lists them one behind the other
const TABS = [['', 'All'], ...STATES.map((state) => [state, state]), [WAITING.join(','), 'waiting']];
const FIRST = { at: '', seen: '' };

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
      status: async (state) => STATES.filter((one) => one.startsWith(state)),
    }),
};

const FIELDS = [
  { name: 'queue', label: 'Queue', suggest: queues },
  { name: 'name', label: 'Name', suggest: names },
  { name: 'tag', label: 'Tag', suggest: tags },
  { name: 'group', label: 'Failure group', suggest: groups },
  { name: 'worker', label: 'Worker', suggest: workers },
  { name: 'message', label: 'Error contains', type: 'search' },
  { name: 'since', label: 'Enqueued from', type: 'datetime' },
  { name: 'until', label: 'Enqueued before', type: 'datetime' },
  {
    name: 'order',
    label: 'Order',
    type: 'select',
    placeholder: 'newest first',
    options: [['oldest', 'next or oldest first']],
  },
];

/** The order within each state of a queue, as the API has it. */
const orderOf = ({ order }) => (order === 'oldest' ? {} : { newest: 1 });

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

/** The row below a job: its argument, and what became of it. */
function Peek({ id }) {
  const state = useData((signal) => api.get(path`/job/${id}`, {}, { signal }), { deps: [id] });
  return html`<div class="peek"><${Loaded} of=${state}>${(job) => html`
    <div><h3>Argument</h3><${Tree} value=${job.argument} label="Argument" /></div>
    ${job.message ? html`<div><h3>Last error</h3><p class="problem clip">${job.message}</p></div>` : null}
    ${(job.result ?? null) === null ? null : html`<div><h3>Result</h3><${Tree} value=${job.result} label="Result" /></div>`}
    <${Link} to=${path`/job/${id}`}>All about it →<//>`}<//></div>`;
}

const columnsOf = (opened, turn) => [
  {
    title: 'Job',
    kind: 'wide',
    cell: (job) => html`<button type="button" class="quiet small peeker" title="Look inside (Space)"
        aria-expanded=${String(opened.has(job.id))} aria-label=${`Look into ${job.id}`}
        onClick=${() => turn(job.id)}>${opened.has(job.id) ? '▾' : '▸'}</button>
      <${Link} to=${path`/job/${job.id}`} data-open>${cut(job.name, 70)}<//> <code class="muted hide-narrow">${job.id}</code>
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

/** → {sums: jobs by state, isMerged: whether the list is over all queues at once}; sums are null where too many queues are. */
async function countStates(queue, signal) {
  if (queue) {
    const one = await only('/queues', { names: queue }, { signal }).catch((problem) => {
      if (problem.status !== 404) throw problem;
      return {};
    });
    return { sums: Object.fromEntries(STATES.map((state) => [state, one[state] || 0])), isMerged: true };
  }
  const { found, isAll } = await all('/queues');
  const sum = (state) => found.reduce((sofar, one) => sofar + one[state], 0);
  const sums = isAll ? Object.fromEntries(STATES.map((state) => [state, sum(state)])) : null;
  return { sums, isMerged: isAll && found.length <= MERGED };
}

const sumOf = (sums, states) => states.reduce((sofar, state) => sofar + sums[state], 0);

/** States with their numbers, as far as queues know them; with other filters nobody counts. */
function States({ sums, filters }) {
  const isKnown = sums && !FILTERS.some((name) => name !== 'status' && name !== 'queue' && filters[name]);
  return html`<div class="states" role="navigation" aria-label="States">${TABS.map(
    ([value, text]) => html`<${Link} to=${withQuery('/jobs', { ...filters, ...FIRST, status: value, order: '' })}
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
      (states || action.path || action.change) &&
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
        : html`<span class="muted">or choose some below</span>`
    }
  </div>`;
}

/** While somebody chooses, reads inside, or marks text to copy it, rows do not move under the hand. */
const isBusy = () =>
  document.querySelector('.acting.has-chosen, dialog[open]') ||
  document.activeElement?.closest('tr.below') ||
  !getSelection().isCollapsed;

/** One page → {rows, cursor, looked}: one request looks at some hundred jobs, with few that match it takes several. */
async function look(where, filters, cursor, signal) {
  const rows = [];
  let at = cursor;
  let looked = 0;
  for (let times = 0; times < TIMES && (!times || at) && rows.length < PAGE; times += 1) {
    const more = { brief: 1, argument_max: PREVIEWED, looked: 1, count: PAGE - rows.length, cursor: at };
    const page = await api.get('/jobs', { ...queryOf(where), ...orderOf(filters), ...more }, { signal });
    rows.push(...page.jobs);
    at = page.cursor;
    looked += page.looked;
  }
  return { rows, cursor: at, looked };
}

const farOf = ({ cursor, looked }, total) =>
  cursor
    ? `Looked at ${count(looked)}${total ? ` of about ${count(Math.max(total, looked))}` : ''} jobs so far.`
    : `Looked at all ${inJobs(looked)}.`;

function Found({ filters, counted }) {
  const key = same([...FILTERS, 'order'].map((name) => filters[name] || ''));
  const [chosen, setChosen] = useState(new Map());
  const [opened, setOpened] = useState(new Set());
  // How many jobs were looked at before a page, by its cursor.
  const before = useRef(null);
  useEffect(() => {
    setChosen(new Map());
    setOpened(new Set());
    return () => {
      before.current = null;
    };
  }, [key]);
  const state = usePages(
    async (cursor, signal) => {
      before.current ??= new Map([[cursor, Number(filters.seen) || 0]]);
      const known = before.current;
      const page = await look(whereOf(filters), filters, cursor, signal);
      const first = cursor ? known.get(cursor) || 0 : 0;
      known.set(page.cursor, first + page.looked);
      if (!signal.aborted) setQuery({ seen: first || '' });
      return { ...page, looked: first + page.looked, key };
    },
    { deps: [key] },
  );
  const { data = { rows: [], looked: 0 }, problem, reload, pager } = state;
  useEffect(
    () => every(5000, async () => !isBusy() && (await Promise.all([reload(), counted.reload()])).every(Boolean)),
    [key],
  );
  const where = whereOf(filters);
  const { rows } = data;
  const turn = (id) => setOpened((old) => new Set(old.has(id) ? [...old].filter((one) => one !== id) : [...old, id]));
  const run = async (action) => {
    const jobs = [...chosen.values()];
    const did = await mass(action, jobs.length ? { ids: [...chosen.keys()], rows: jobs } : { where });
    if (did === undefined) return;
    setChosen(new Map());
    await Promise.all([reload(), counted.reload()]);
  };
  const byId = new Map(rows.map((job) => [job.id, job]));
  const onKey = (event) => {
    const id = event.target.dataset.key;
    if (event.key !== ' ' || !byId.has(id)) return;
    event.preventDefault();
    turn(id);
  };
  const isOld = data.key !== key;
  const sums = counted.data?.sums;
  const empty = isOld
    ? html`<div class="empty">${problem ? null : 'Loading …'}</div>`
    : html`<div class="empty">No job matches. <${Link} to="/jobs">All jobs<//> · <${Link} to="/enqueue">Enqueue one<//></div>`;
  return html`<${Acting} chosen=${[...chosen.values()]} filters=${filters} run=${run} clear=${() => setChosen(new Map())} />
    ${problem && isOld ? html`<${Problem} problem=${problem} retry=${reload} />` : null}
    <div class="jobs-list" onKeyDown=${onKey}>
      <${Table} label="Jobs" rows=${rows} rowKey=${(job) => job.id} columns=${columnsOf(opened, turn)} empty=${empty}
        isOld=${isOld} chosen=${new Set(chosen.keys())}
        onChoose=${(ids) => setChosen((old) => new Map([...ids].map((id) => [id, byId.get(id) || old.get(id)])))}
        below=${({ id }) => opened.has(id) && html`<${Peek} id=${id} />`}>
        <${Pager} of=${pager}>${!rows.length && data.cursor ? 'Nothing found so far; there is more to look at' : null}<//>
      <//>
    </div>
    ${
      isOld || isCounted(where) || where.tag || where.group
        ? null
        : html`<p class="muted scan" role="status">${farOf(data, sums && sumOf(sums, where.status || STATES))}</p>`
    }`;
}

/** Why the line is none; null where it is one. */
function wrongIn(filters) {
  try {
    whereOf(filters);
    return null;
  } catch (problem) {
    return problem.message;
  }
}

function Notes({ filters, isMerged }) {
  const { from, to, queue, order, tag, group } = filters;
  const isApart = !isMerged && !queue && !order && !tag && !group;
  return html`${
    from && to
      ? html`<p class="muted">${`Only jobs that were enqueued from ${moment(Number(from))} to ${moment(Number(to))}, as the time range says. `}
          <button type="button" class="inline" onClick=${() => setQuery({ ...FIRST, from: '', to: '' })}>Any time</button></p>`
      : null
  }
    ${
      isApart
        ? html`<p class="muted apart" role="status">With more than ${MERGED} queues they are listed one behind the other, by
          name: what happened last need not be on this page. Choose a queue.</p>`
        : null
    }`;
}

/** A key that is bound to queues lists one of them at a time. */
function ChooseQueue() {
  const state = useData((signal) => api.get('/overview', {}, { signal }));
  return html`<${Head} title="Jobs" /><p class="muted">The key is bound to queues (${boundTo().join(', ')}): choose one.</p>
    <${Loaded} of=${state}>${({ queues: { top } }) => linked(top, (queue) => withQuery('/jobs', { queue }))}<//>`;
}

export function Jobs() {
  const [{ queue }] = useQuery();
  return boundTo() && !queue ? html`<${ChooseQueue} />` : html`<${All} />`;
}

function All() {
  const [filters] = useQuery();
  const { queue = '', status = '' } = filters;
  const counted = useData((signal) => countStates(queue, signal), { deps: [queue, status] });
  const wrong = wrongIn(filters);
  const [isOpen] = useState(() => innerWidth > 700 && FIELDS.some(({ name }) => filters[name]));
  return html`<${Head} title="Jobs" actions=${html`<${Link} class="button" to="/enqueue">Enqueue…<//>`} />
    <${Bulks} />
    <${States} sums=${counted.data?.sums} filters=${filters} />
    <div class="query-line"><${FilterBar} fields=${[LINE]} /></div>
    <details class="filter-box" open=${isOpen}><summary>Filters</summary><${FilterBar} fields=${FIELDS} /></details>
    <${Notes} filters=${filters} isMerged=${!counted.data || counted.data.isMerged} />
    ${
      wrong
        ? html`<p class="problem" role="alert">${wrong}</p>`
        : html`<${Found} filters=${filters} counted=${counted} />`
    }`;
}
