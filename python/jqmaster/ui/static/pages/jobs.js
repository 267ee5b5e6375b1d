// Jobs by what they are: filters in the address, a look inside, and acting on one, some, or all that match.

import { all, api, path, stringify } from '../api.js';
import { badge, STATES } from '../components/badge.js';
import { filterBar } from '../components/filter.js';
import { table } from '../components/table.js';
import { tree } from '../components/tree.js';
import { button, fill, h } from '../dom.js';
import { ago, brief, count, cut, duration, jobs as inJobs, moment, now } from '../format.js';
import { ACTIONS } from '../jobs/actions.js';
import { mass } from '../jobs/mass.js';
import { progressOf } from '../jobs/progress.js';
import { completions } from '../jobs/queryline.js';
import { groups, names, queues, tags } from '../jobs/suggest.js';
import { FILTERS, isCounted, queryOf, WAITING, whereOf } from '../jobs/where.js';
import { workerLink, workers } from '../jobs/worker.js';
import { every } from '../live.js';
import { may } from '../rights.js';
import { link, query, setQuery, withQuery } from '../router.js';

const PAGE = 50;
const TIMES = 10;
const PREVIEWED = 600; // bytes of an argument that is shown in the list
const MOST_SEEN = 5000; // of an open page that nobody touches for days
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
      status: async (state) => STATES.filter((one) => one.startsWith(state)),
    }),
};

const FIELDS = [
  { name: 'queue', label: 'Queue', suggest: queues },
  { name: 'name', label: 'Name', suggest: names },
  { name: 'tag', label: 'Tag', suggest: tags },
  { name: 'group', label: 'Failure group', suggest: groups },
  { name: 'message', label: 'Error contains', type: 'search' },
  { name: 'since', label: 'Enqueued from', type: 'datetime' },
  { name: 'until', label: 'Enqueued before', type: 'datetime' },
  {
    name: 'order',
    label: 'Order',
    type: 'select',
    placeholder: 'running, then newest',
    options: [
      ['newest', 'by queue, newest first'],
      ['oldest', 'by queue, next or oldest first'],
    ],
  },
];

/** The order as the API has it: over all queues as things happen, unless another was asked for. */
const orderOf = ({ order }) => (order ? { newest: order === 'newest' ? 1 : '' } : { recent: 1 });

function when(job) {
  if (job.ended_ms) return ago(job.ended_ms);
  if (job.status === 'running') return ago(job.started_ms);
  if (job.due_ms) return ['due ', ago(job.due_ms)];
  return ago(job.created_ms);
}

/** What few jobs have: more than one attempt, a priority. */
const oddities = ({ attempt, priority }) =>
  [attempt > 1 ? `attempt ${count(attempt)}` : '', priority ? `priority ${priority}` : ''].filter(Boolean).join(', ');

/** How long it ran, or runs. */
function took(job) {
  if (job.started_ms === undefined) return '';
  if (job.status === 'running') return duration(Math.max(0, now() - job.started_ms));
  return job.ended_ms === undefined ? '' : duration(Math.max(0, job.ended_ms - job.started_ms));
}

/** What it is about, in two lines: the argument as far as it is short, and what was said of it. */
function what(job) {
  const isKnown = job.argument !== undefined;
  const text = isKnown ? stringify(job.argument) : 'a long argument';
  return [
    job.argument === null
      ? null
      : h(
          'div',
          { class: isKnown ? 'preview' : 'preview muted', title: isKnown ? cut(text, PREVIEWED) : '' },
          cut(text, 120),
        ),
    job.message && job.status !== 'done'
      ? h('span', { class: 'said', title: cut(job.message, 1000) }, cut(job.message, 90), ' ')
      : null,
    (job.tags || []).slice(0, 4).map((tag) => h('span', { class: 'tag' }, cut(tag, 30))),
  ];
}

/** The row below a job: its argument, and what became of it. */
function peek(id) {
  const place = h('div', { class: 'peek' }, 'Loading…');
  api.get(path`/job/${id}`).then(
    (job) =>
      fill(
        place,
        h('div', {}, h('h3', {}, 'Argument'), tree(job.argument, 'Argument')),
        job.message ? h('div', {}, h('h3', {}, 'Last error'), h('p', { class: 'problem clip' }, job.message)) : null,
        job.result !== undefined && job.result !== null
          ? h('div', {}, h('h3', {}, 'Result'), tree(job.result, 'Result'))
          : null,
        link(path`/job/${id}`, 'All about it →'),
      ),
    (problem) => fill(place, h('p', { class: 'problem' }, problem.message)),
  );
  return place;
}

/** `opened`: what is shown below which job. */
function columns(opened, openPeek) {
  return [
    {
      title: 'Job',
      kind: 'wide',
      cell: (job) => [
        button(opened.has(job.id) ? '▾' : '▸', () => openPeek(job), {
          class: 'quiet small peeker',
          'aria-expanded': String(opened.has(job.id)),
          'aria-label': `Look into ${job.id}`,
          title: 'Look inside (Space)',
        }),
        h('a', { href: `/ui${path`/job/${job.id}`}`, 'data-open': true }, cut(job.name, 70)),
        ' ',
        h('code', { class: 'muted hide-narrow' }, job.id),
        h('span', { class: 'muted odd' }, oddities(job)),
      ],
    },
    {
      title: 'Queue',
      hide: 'narrow',
      kind: 'wide',
      cell: (job) => link(path`/queue/${job.queue}`, cut(job.queue, 50)),
    },
    { title: 'State', cell: (job) => [badge(job.status), progressOf(job)] },
    { title: 'Time', kind: 'time', cell: when },
    { title: 'Took', kind: 'number', tip: 'From its last start to its end, or until now', cell: took },
    {
      title: 'Worker',
      hide: 'narrow',
      tip: 'Who runs it, or ran it last',
      cell: (job) => (job.worker_id ? workerLink(job.worker_id, 24) : ''),
    },
    { title: 'Argument, error, tags', kind: 'wide', hide: 'narrow', cell: what },
  ];
}

/** States with their numbers, as far as queues know them; with other filters nobody counts. */
function stateTabs() {
  const element = h('div', { class: 'states', role: 'navigation', 'aria-label': 'States' });
  let known = null;
  async function look() {
    const { queue } = query();
    const found = queue
      ? [
          await api
            .get(path`/queue/${queue}`)
            .catch((problem) => (problem.status === 404 ? null : Promise.reject(problem))),
        ]
      : await all('/queues');
    const list = Array.isArray(found) ? found.filter(Boolean) : found.isAll ? found.found : null;
    known = list && Object.fromEntries(STATES.map((state) => [state, list.reduce((sum, one) => sum + one[state], 0)]));
  }
  function draw() {
    const filters = query();
    const held = [...element.children].indexOf(document.activeElement);
    const isKnown = known && !FILTERS.some((name) => name !== 'status' && name !== 'queue' && filters[name]);
    fill(
      element,
      TABS.map(([value, text]) => {
        const sum = isKnown ? (value ? value.split(',') : STATES).reduce((all, state) => all + known[state], 0) : null;
        return h(
          'a',
          {
            href: `/ui${withQuery('/jobs', { ...filters, status: value, order: '', at: '', seen: '' })}`,
            class: value && !value.includes(',') ? `state is-${value}` : 'state',
            'aria-current': (filters.status || '') === value ? 'true' : undefined,
          },
          text,
          sum === null ? null : h('b', {}, brief(sum)),
        );
      }),
    );
    element.children[held]?.focus();
  }
  return {
    element,
    draw,
    /** Of how many jobs those are that the filters of states and queue leave; null where that is not known. */
    total: ({ status }) => known && (status || STATES).reduce((sum, state) => sum + known[state], 0),
    async refresh() {
      await look();
      draw();
    },
  };
}

export async function render(view) {
  const seen = new Map();
  const opened = new Map();
  const tabs = stateTabs();
  const bar = h('div', { class: 'acting', role: 'toolbar', 'aria-label': 'With these jobs' });
  const range = h('p', { class: 'muted' });
  const scan = h('p', { class: 'muted scan', role: 'status' });
  const begin = query().at || '';
  // How many jobs were looked at before a page, by its cursor.
  const before = new Map([
    ['', 0],
    [begin, Number(query().seen) || 0],
  ]);

  function openPeek(job) {
    if (opened.has(job.id)) opened.delete(job.id);
    else opened.set(job.id, peek(job.id));
    list.redraw();
    list.focus(job.id);
  }

  /** How far a search looked that nobody can count. */
  function drawScan(where, looked, isEnd) {
    const total = tabs.total(where);
    const { from, to } = query();
    fill(
      range,
      from && to
        ? [
            `Only jobs that were enqueued from ${moment(Number(from))} to ${moment(Number(to))}, as the time range says. `,
            link(withQuery('/jobs', { ...query(), from: '', to: '', at: '', seen: '' }), 'Any time'),
          ]
        : null,
    );
    const far = isEnd
      ? `Looked at all ${inJobs(looked)}.`
      : `Looked at ${count(looked)}${total ? ` of about ${count(Math.max(total, looked))}` : ''} jobs so far.`;
    fill(
      scan,
      isCounted(where) || where.tag || where.group ? null : far,
      begin && query().at
        ? [' ', link(withQuery('/jobs', { ...query(), at: '', seen: '' }), 'To the first page')]
        : null,
    );
  }

  async function load(cursor, signal) {
    const where = whereOf(query());
    const rows = [];
    let at = cursor;
    let looked = before.get(cursor) || 0;
    // One request looks at some hundred jobs: with few that match, a page takes several.
    for (let times = 0; times < TIMES && (!times || at) && rows.length < PAGE; times += 1) {
      const page = await api.get(
        '/jobs',
        {
          ...queryOf(where),
          ...orderOf(query()),
          brief: 1,
          argument_max: PREVIEWED,
          looked: 1,
          count: PAGE - rows.length,
          cursor: at,
        },
        { signal },
      );
      rows.push(...page.jobs);
      at = page.cursor;
      looked += page.looked;
    }
    setQuery({ at: cursor, seen: cursor ? before.get(cursor) : '' });
    before.set(at, looked);
    drawScan(where, looked, !at);
    if (seen.size > MOST_SEEN && !list.selected().length) seen.clear();
    for (const job of rows) seen.set(job.id, job);
    return { rows, cursor: at };
  }

  const list = table({
    label: 'Jobs',
    key: (job) => job.id,
    open: true,
    below: (job) => opened.get(job.id),
    start: begin,
    columns: columns(opened, openPeek),
    load,
    select: (ids) => drawBar(ids),
    empty: () => ['No job matches. ', link('/jobs', 'All jobs'), ' · ', link('/enqueue', 'Enqueue one')],
  });

  async function run(action, target) {
    if ((await mass(action, target)) === undefined) return;
    list.clear();
    await Promise.all([list.refresh(), tabs.refresh()]);
  }

  function drawBar(ids) {
    const rows = ids.map((id) => seen.get(id)).filter(Boolean);
    const states = rows.length ? new Set(rows.map((job) => job.status)) : null;
    const wanted = query().status?.split(',');
    const fitting = ACTIONS.filter((action) =>
      action.states.some((state) => (states ? states.has(state) : !wanted || wanted.includes(state))),
    ).filter((action) => (states || action.path || action.change) && may('operator'));
    bar.classList.toggle('has-chosen', rows.length > 0);
    fill(
      bar,
      h('b', {}, rows.length ? `${inJobs(rows.length)} chosen:` : 'All that match:'),
      fitting.map((action) =>
        button(`${action.label}…`, () => run(action, rows.length ? { ids, rows } : { where: whereOf(query()) }), {
          class: action.danger ? 'small danger' : 'small',
          title: action.what,
        }),
      ),
      rows.length
        ? button('Choose none', () => list.clear(), { class: 'quiet small' })
        : h('span', { class: 'muted' }, 'or choose some below'),
    );
  }

  list.element.classList.add('jobs-list');
  const wrong = h('p', { class: 'problem', role: 'alert', hidden: true });
  /** Says so where the line is none → whether it is one. */
  function isLine() {
    try {
      whereOf(query());
      wrong.hidden = true;
    } catch (problem) {
      fill(wrong, problem.message);
      wrong.hidden = false;
    }
    return wrong.hidden;
  }
  const whenChanged = {
    change: () => {
      if (!isLine()) return;
      opened.clear();
      before.clear();
      setQuery({ at: '', seen: '' });
      tabs.draw();
      drawBar([]);
      list.reset();
      tabs.refresh().catch((problem) => console.debug(problem));
    },
  };
  const line = filterBar({ fields: [LINE], ...whenChanged });
  const filters = filterBar({ fields: FIELDS, ...whenChanged });
  line.element.classList.add('query-line');

  // Space looks inside, as it does in mail.
  list.element.addEventListener('keydown', (event) => {
    const row = event.target.closest('tr[data-key]');
    if (event.key !== ' ' || event.target !== row || !seen.has(row.dataset.key)) return;
    event.preventDefault();
    openPeek(seen.get(row.dataset.key));
  });
  const more = h(
    'details',
    { class: 'filter-box', open: innerWidth > 700 && Object.keys(filters.values()).length > 0 },
    h('summary', {}, 'Filters'),
    filters.element,
  );
  view.append(
    h(
      'div',
      { class: 'head' },
      h('h1', {}, 'Jobs'),
      h('div', { class: 'actions' }, h('a', { class: 'button', href: '/ui/enqueue' }, 'Enqueue…')),
    ),
    tabs.element,
    line.element,
    wrong,
    more,
    range,
    bar,
    list.element,
    scan,
  );
  tabs.draw();
  drawBar([]);
  if (isLine()) await list.refresh();
  tabs.refresh().catch((problem) => console.debug(problem));
  // While somebody chooses, reads inside, or marks text to copy it, rows do not move under the hand.
  const isBusy = () =>
    list.selected().length ||
    document.querySelector('dialog[open]') ||
    document.activeElement?.closest('tr.below') ||
    !getSelection().isCollapsed;
  return every(5000, async () => {
    if (isBusy() || !isLine()) return;
    await Promise.all([list.refresh(), tabs.refresh()]);
  });
}
