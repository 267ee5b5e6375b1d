// Workers: what each runs and for how long, its slots and last sign of life; the dead of the last hour; what can be done.
import { AlertsOf, useAlerts } from './alerts.js';
import { api, only, path, toJob, withQuery } from './api.js';
import { count, cut, jobs as inJobs, moment } from './format.js';
import { act, confirm } from './forms.js';
import {
  Age,
  Ago,
  Badge,
  Button,
  Empty,
  Facts,
  FilterBar,
  Head,
  hasSlots,
  isRegistered,
  Loaded,
  linked,
  Meter,
  none,
  Pager,
  Table,
  takeJobs,
  toQueue,
  usePages,
} from './parts.js';
import { html, Link, useData, useQuery } from './view.js';

const TIPS = {
  ready: 'Has room',
  full: 'Runs as many as it takes',
  busy: 'Said that it is busy',
  unreachable: 'Deliveries do not get through',
  pulling: 'Fetches jobs by itself',
  quiet: 'Finishes what it has, takes no more',
  gone: 'Gives no sign of life any more',
};

const WorkerState = ({ of }) =>
  html`<${Badge} word=${of.state} title=${TIPS[of.state]} />${
    of.request === 'stop' ? html` <${Badge} word="stop" title="It was asked to stop" />` : null
  }`;

/** Its slots: of those that never said how many they have only how many jobs; of the dead nothing. */
function Slots({ of }) {
  if (of.state === 'gone') return none();
  return hasSlots(of) ? html`<${Meter} value=${of.held} limit=${of.max_jobs} />` : inJobs(of.held);
}

const SHOWN = 3;
const LOOKED_AT = 200; // running jobs, of which it is told what they are

const Queues = ({ of }) =>
  [of.queues]
    .flat()
    .map((queue, i) => [i ? ', ' : '', queue.includes('*') ? html`<code>${queue}</code>` : linked([queue], toQueue)]);

/** What is known of some running jobs, by id. */
async function runningJobs(signal) {
  const { jobs } = await api.get('/jobs', { status: 'running', brief: 1, count: LOOKED_AT }, { signal });
  return new Map(jobs.map((job) => [job.id, job]));
}

// -- what can be done with one ------------------------------------------------------------------------

async function ask(worker, what, text, undo) {
  const isSure =
    what !== 'stop' ||
    (await confirm({
      title: `Stop ${worker.name}?`,
      action: 'Stop',
      body: 'It finishes what it runs and ends. Something else has to start it again.',
    }));
  const say = (request) => api.post(path`/worker/${worker.id}`, { request });
  return isSure ? act(() => say(what), text, { undo: undo && (() => say(undo)) }) : undefined;
}

/** `done` is called afterwards. */
function Actions({ of, done, size = 'small' }) {
  const button = (label, action, { kind = '', ...rest } = {}) =>
    html`<${Button} needs="operator" class=${`${size} ${kind}`} onClick=${async () => (await action()) !== undefined && done()}
      aria-label=${`${label.replace('…', '')} ${label.startsWith('Take') ? 'from ' : ''}${of.name}`} ...${rest}>${label}<//>`;
  const isThere = isRegistered(of.id) && of.state !== 'gone';
  return [
    of.held
      ? button('Take jobs…', () => takeJobs({ worker: of.id }, of.name), {
          kind: 'danger',
          title: 'Have all its jobs wait again',
        })
      : null,
    isThere && of.request ? button('Resume', () => ask(of, 'resume', `${of.name} takes jobs again.`)) : null,
    isThere && !of.request
      ? button('Quiet', () => ask(of, 'quiet', `${of.name} takes no more jobs.`, 'resume'), {
          title: 'Finish what it has, take no more',
        })
      : null,
    isThere && of.request !== 'stop'
      ? button('Stop…', () => ask(of, 'stop', `${of.name} was asked to stop.`, 'resume'), { kind: 'danger' })
      : null,
  ];
}

// -- the list -----------------------------------------------------------------------------------------

function Runs({ of, jobsById }) {
  if (of.state === 'gone') return none(of.lost?.length ? `lost ${inJobs(of.lost.length)}` : 'gone');
  if (!of.running.length) return none('nothing');
  const more = of.held - SHOWN;
  return html`${of.running.slice(0, SHOWN).map(([id, startedMs]) => {
    const job = jobsById.get(id);
    return html`<div key=${id}>
      <${Link} to=${path`/job/${id}`} class=${job?.name.length < 24 ? 'nowrap' : ''}>${job?.name ? cut(job.name, 40) : html`<code>${id}</code>`}<//>
      <span class="muted nowrap"> for <${Age} ms=${startedMs} /></span></div>`;
  })}${more > 0 ? html`<${Link} to=${path`/worker/${of.id}`}>${count(more)} more<//>` : null}`;
}

/** Whether a worker names a queue; the names of queues may have stars. */
function serves({ queues }, name) {
  const patternOf = (text) =>
    text.split('*').map(RegExp.escape ?? ((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&')));
  return queues.some((text) => new RegExp(`^${patternOf(text).join('.*')}$`, 's').test(name));
}

async function page(cursor, signal) {
  const { workers, cursor: next } = await api.get('/workers', { cursor, count: 50 }, { signal });
  return { rows: workers, cursor: next };
}

const place = ({ host, pid, id, name }) =>
  host
    ? html`<div class="muted">${host}${pid ? ` · ${pid}` : ''}</div>`
    : id !== name && html`<div><code class="muted">${id}</code></div>`;

const columns = (jobsById, hung, reload) => [
  {
    title: 'Worker',
    kind: 'wide',
    cell: (worker) => html`<${Link} to=${path`/worker/${worker.id}`}>${worker.name}<//>${place(worker)}`,
  },
  {
    title: 'State',
    cell: (worker) => {
      const alert = hung.find((hanging) => hanging.worker === worker.id);
      const badge = alert && html` <${Badge} word="hangs" kind="problem" title=${alert.text} />`;
      return html`<${WorkerState} of=${worker} />${badge}`;
    },
  },
  { title: 'Slots', cell: (worker) => html`<${Slots} of=${worker} />` },
  {
    title: 'Runs',
    kind: 'wide',
    tip: 'The longest first',
    cell: (worker) => html`<${Runs} of=${worker} jobsById=${jobsById} />`,
  },
  { title: 'Sign of life', cell: (worker) => html`<${Ago} ms=${worker.seen_ms} />` },
  { title: 'Queues', hide: 'narrow', cell: (worker) => html`<${Queues} of=${worker} />` },
  { title: 'Version', hide: 'tight', cell: ({ version }) => html`<span class="muted nowrap">${version ?? '–'}</span>` },
  {
    title: 'Lapsed',
    kind: 'number',
    hide: 'tight',
    tip: 'Attempts whose lease ran out',
    cell: ({ lapsed }) => (lapsed ? html`<b>${count(lapsed)}</b>` : none('0')),
  },
  { title: '', kind: 'actions', cell: (worker) => html`<${Actions} of=${worker} done=${reload} />` },
];

const isGone = ({ state }) => state === 'gone';

export function Workers() {
  const [{ queue = '' }] = useQuery();
  const { pager, ...state } = usePages(page, { ms: 3000 });
  const { data: jobsById = new Map() } = useData(runningJobs, { ms: 10000 });
  const hung = (useAlerts().data?.alerts || []).filter(({ kind }) => kind === 'hung');
  const empty = html`<${Empty} command="jqmaster work my_module:jq">No worker is here. Start one with your jobs:<//>`;
  return html`<${Head} title="Workers" />
    <${FilterBar} fields=${[{ name: 'queue', label: 'Serves the queue', type: 'search' }]} />
    <p class="muted">Workers that jobs are pushed to, or that were started with <code>--register</code>, can be asked to be quiet or
      to stop. Others that pull are seen every minute. Dead ones stay for an hour.</p>
    <${Loaded} of=${state}>${({
      rows,
      cursor,
    }) => html`<${Table} label="Workers" columns=${columns(jobsById, hung, state.reload)}
      rows=${rows.filter((worker) => !queue || serves(worker, queue)).sort((a, b) => isGone(a) - isGone(b))} rowKey=${(worker) => worker.id}
      empty=${pager.back || cursor ? null : empty}><${Pager} of=${pager} /><//>`}<//>`;
}

// -- one worker ---------------------------------------------------------------------------------------

function About({ of: worker }) {
  return html`<section class="panel" aria-label="About"><${Facts} pairs=${[
    ['Id', worker.id !== worker.name && html`<code>${worker.id}</code>`],
    [
      'Host',
      worker.host && html`${worker.host}${worker.pid && html`<span class="muted"> · process ${worker.pid}</span>`}`,
    ],
    ['Version', worker.version],
    ['Pushed to', worker.url && html`<code>${worker.url}</code>`],
    ['Queues', worker.queues.length && html`<${Queues} of=${worker} />`],
    ['Jobs it knows', worker.knows?.join(', ')],
    ['Jobs it does not know', worker.refused?.join(', ')],
    ['Slots', html`<${Slots} of=${worker} />`],
    ['Listed since', worker.since_ms && html`${moment(worker.since_ms)} (<${Ago} ms=${worker.since_ms} />)`],
    ['Last sign of life', html`<${Ago} ms=${worker.seen_ms} />`],
    ['Leases that ran out', worker.lapsed && html`<b>${count(worker.lapsed)}</b>`],
    ['Its jobs', html`<${Link} to=${withQuery('/jobs', { worker: worker.id })}>All it runs, and ran last<//>`],
  ]} /></section>`;
}

function Gone({ lost = [], lapsed }) {
  return html`<section class="panel" role="status"><h2>It is gone</h2>
    <p>It gave no sign of life for too long. ${lost.length ? `${inJobs(lapsed)} lapsed with it or before: ` : 'It held no job that is known.'}
      ${linked(lost, (id) => path`/job/${id}`)}</p></section>`;
}

const jobColumns = (reload) => [
  { title: 'Job', cell: ({ id }) => html`<${Link} to=${path`/job/${id}`}><code>${id}</code><//>` },
  { title: 'Name', kind: 'wide', cell: ({ name }) => (name ? cut(name, 80) : none()) },
  { title: 'Queue', hide: 'narrow', cell: ({ queue }) => (queue ? linked([queue], toQueue) : none()) },
  { title: 'Runs for', kind: 'number', cell: (job) => html`<${Age} ms=${job.started_ms} />` },
  {
    title: '',
    kind: 'actions',
    cell: ({ id }) => html`<${Button} needs="operator" class="small" aria-label=${`Take ${id}`}
      onClick=${() => act(() => toJob('/jobs/kick', { ids: [id] }), `${id} waits again.`).then(reload)}>Take job<//>`,
  },
];

export function Worker({ params: { name: id } }) {
  const look = async (signal) => {
    const [worker, jobsById] = await Promise.all([only('/workers', { ids: id }, { signal }), runningJobs(signal)]);
    return { worker, jobsById };
  };
  const state = useData(look, { ms: 3000, deps: [id] });
  return html`<${Loaded} of=${state}>${({ worker, jobsById }) => {
    const rows = worker.running.map(([job, ms]) => ({ ...jobsById.get(job), id: job, started_ms: ms }));
    const title = html`<span class="crumb"><${Link} to="/workers">Workers<//> / </span>${worker.name} <${WorkerState} of=${worker} />`;
    return html`<${Head} title=${title} actions=${html`<${Actions} of=${worker} done=${state.reload} size="" />`} />
      ${isGone(worker) ? html`<${Gone} ...${worker} />` : null}
      <${AlertsOf} field="worker" name=${id} />
      <${About} of=${worker} />
      <h2>Running jobs</h2>
      <${Table} label="Jobs that it runs" columns=${jobColumns(state.reload)} rows=${rows} rowKey=${(job) => job.id}
        empty=${html`<${Empty}>It runs nothing now.<//>`} />`;
  }}<//>`;
}
