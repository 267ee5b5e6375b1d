// Recurring jobs: when they come next, what became of the last ones, and what can be done with them.
import { api, only, path } from './api.js';
import { count, duration, moment } from './format.js';
import { act, confirm, form, toast } from './forms.js';
import {
  Ago,
  Badge,
  Button,
  Empty,
  Facts,
  Head,
  Loaded,
  linked,
  none,
  Pager,
  Section,
  Table,
  toQueue,
  Until,
  usePages,
} from './parts.js';
import { Tree } from './tree.js';
import { html, Link, navigate, useData } from './view.js';

const to = (id) => path`/schedule/${id}`;
const SPEC = 'every cron timezone tz catch_up paused job argument'.split(' ');

/** A schedule as it can be set again. */
const settable = (schedule) =>
  Object.fromEntries(SPEC.map((name) => [name, schedule[name]]).filter(([, value]) => (value ?? null) !== null));

const When = ({ of }) =>
  of.cron
    ? html`<code class="nowrap">${of.cron}</code><span class="muted nowrap"> ${of.timezone || of.tz || 'UTC'}</span>`
    : `every ${duration(of.every * 1000)}`;

// -- what can be done with one ------------------------------------------------------------------------

/** What comes of it is said at once, and can be undone. */
function edit(old, reload) {
  const when = (name, label, more) => ({ group: 'When', name, label, value: old?.[name], half: true, ...more });
  const more = (name, label, more) => ({ group: 'More', name, label, value: old?.[name], half: true, ...more });
  const cron = 'minute hour day month weekday, or @hourly, @daily, @weekly, @monthly, @yearly';
  return form({
    title: old ? `Change ${old.id}` : 'New schedule',
    wide: true,
    action: old ? 'Replace' : 'Create',
    body: 'Either an interval or a cron line.',
    fields: [
      ...(old ? [] : [{ name: 'id', label: 'Name', required: true }]),
      when('every', 'Every', { unit: 'seconds', type: 'number' }),
      when('cron', 'Cron', { hint: cron }),
      when('timezone', 'Time zone', { hint: 'such as Europe/Berlin, with cron; default: UTC' }),
      {
        group: 'What',
        name: 'job',
        label: 'Job',
        type: 'json',
        rows: 4,
        required: true,
        value: old ? old.job : { name: 'report' },
        hint: 'name, queue, priority, max_retry, … as for enqueueing',
      },
      { group: 'What', name: 'argument', label: 'Argument', type: 'json', rows: 3, value: old?.argument },
      more('catch_up', 'One job for what was missed in a gap', { type: 'checkbox', value: old?.catch_up ?? true }),
      more('paused', 'Paused', { type: 'checkbox' }),
    ],
    submit: async ({ id = old?.id, ...values }) => {
      await api.post(to(id), values).catch((problem) => {
        throw Object.assign(problem, { field: problem.field?.startsWith('job') ? 'job' : problem.field });
      });
      const { next = [] } = await only('/schedules', { ids: id, next: 3 });
      const undo = () => (old ? api.post(to(id), settable(old)) : api.delete(to(id)));
      const moments = next.map((ms) => moment(ms)).join(', ') || 'never';
      toast(`${id} is in force. Its next moments: ${moments}.`, 'ok', { undo: () => undo().then(reload) });
    },
  });
}

const run = (schedule) =>
  act(
    () => api.post(to(schedule.id), { run: true }),
    ({ job_id: id, created }) =>
      created ? `${schedule.id} runs now: job ${id}.` : `${schedule.id}: job ${id} has its unique key already.`,
  );

function pause(schedule, reload) {
  const put = (paused) => api.post(to(schedule.id), { paused: Boolean(paused) });
  return act(() => put(!schedule.paused), schedule.paused ? `${schedule.id} goes on.` : `${schedule.id} is paused.`, {
    undo: () => put(schedule.paused).then(reload),
  });
}

async function remove(schedule, reload) {
  const isSure = await confirm({
    title: `Delete ${schedule.id}?`,
    action: 'Delete',
    body: 'Jobs that it has made stay.',
  });
  const undo = () => api.post(to(schedule.id), settable(schedule)).then(reload);
  return isSure && act(() => api.delete(to(schedule.id)), `${schedule.id} is deleted.`, { undo });
}

/** `gone`: called when it was deleted. */
function Actions({ of, reload, gone = reload, size = '' }) {
  const action = (text, does, after = reload, more = {}) => html`<${Button} needs="operator" class=${size}
    aria-label=${`${text.replace('…', '')} ${of.id}`} ...${more}
    onClick=${async () => (await does(of, reload)) !== false && after()}>${text}<//>`;
  return [
    action('Run now', run, reload, {
      'aria-label': `Run now: ${of.id}`,
      title: 'Its moments go on as if this job were none',
    }),
    action(of.paused ? 'Resume' : 'Pause', pause),
    action('Change…', edit),
    action('Delete…', remove, gone, { class: `${size} danger` }),
  ];
}

// -- the list -----------------------------------------------------------------------------------------

const took = (run) => (run.started_ms && run.ended_ms ? Math.max(0, run.ended_ms - run.started_ms) : null);

function Last({ of: { runs: [run] = [] } }) {
  if (!run) return none();
  const badge = html`<${Badge} word=${run.status ?? 'not kept'} kind=${run.status ?? 'cancelled'} />`;
  return html`<${Link} to=${path`/job/${run.id}`} aria-label=${`Job ${run.id}: ${run.status ?? 'not kept'}`}>${badge}<//>
    <span class="muted nowrap"> <${Ago} ms=${run.ended_ms ?? run.started_ms} /></span>`;
}

function Next({ of }) {
  if (!of.next_ms) return none(of.paused ? '–' : 'never');
  const then = of.next?.slice(1).map((ms) => moment(ms).slice(5, 16)) ?? [];
  const more = html`<div class="muted hide-narrow nowrap" title=${then.join('\n')}>then ${then[0]}</div>`;
  return html`<${Until} ms=${of.next_ms} />${then.length ? more : null}`;
}

const Job = ({ of: { job } }) =>
  html`${job.name}${job.queue && job.queue !== job.name ? html`<span class="muted"> in ${linked([job.queue], toQueue)}</span>` : null}`;

const made = (schedule) => count(schedule.made);

const columns = (reload) => [
  {
    title: 'Schedule',
    kind: 'wide',
    cell: (schedule) =>
      html`<${Link} to=${to(schedule.id)}>${schedule.id}<//>${schedule.paused ? html` <${Badge} word="paused" />` : null}`,
  },
  { title: 'When', kind: 'wide', cell: (schedule) => html`<${When} of=${schedule} />` },
  { title: 'Job', kind: 'wide', hide: 'narrow', cell: (schedule) => html`<${Job} of=${schedule} />` },
  { title: 'Next', cell: (schedule) => html`<${Next} of=${schedule} />` },
  { title: 'Last job', kind: 'wide', cell: (schedule) => html`<${Last} of=${schedule} />` },
  { title: 'Made', kind: 'number', hide: 'narrow', cell: made },
  { title: '', kind: 'actions', cell: (schedule) => html`<${Actions} of=${schedule} reload=${reload} size="small" />` },
];

export function Schedules() {
  const load = (cursor, signal) => api.get('/schedules', { cursor, count: 50, next: 3, runs: 20 }, { signal });
  const { pager, ...state } = usePages(load, { ms: 5000 });
  const { reload } = state;
  const create = html`<${Button} needs="operator" class="primary" onClick=${() => edit(undefined, reload).then(reload)}>New schedule…<//>`;
  const empty = html`<${Empty} command="jqmaster call schedule nightly --job report --cron '0 3 * * *'">
    No recurring jobs. Make one here, or:<//>`;
  return html`<${Head} title="Schedules" actions=${create} />
    <${Loaded} of=${state}>${({ schedules, cursor }) => html`<${Table} label="Schedules" columns=${columns(reload)}
      rows=${schedules} rowKey=${(schedule) => schedule.id} empty=${pager.back || cursor ? null : empty}><${Pager} of=${pager} /><//>`}<//>`;
}

// -- one schedule -------------------------------------------------------------------------------------

const RUNS = [
  { title: 'Job', kind: 'wide', cell: ({ id }) => html`<${Link} to=${path`/job/${id}`}><code>${id}</code><//>` },
  { title: 'State', cell: ({ status }) => (status ? html`<${Badge} word=${status} />` : none('not known any more')) },
  { title: 'Started', cell: ({ started_ms }) => html`<${Ago} ms=${started_ms} />` },
  { title: 'Took', kind: 'number', cell: (run) => duration(took(run)) },
];

export function Schedule({ params: { id } }) {
  const load = (signal) => only('/schedules', { ids: id, next: 10, runs: 20 }, { signal });
  const state = useData(load, { ms: 5000, deps: [id] });
  const title = html`<span class="crumb"><${Link} to="/schedules">Schedules<//> / </span>${id} `;
  return html`<${Loaded} of=${state}>${(schedule) => html`
    <${Head} title=${title} actions=${html`<${Actions} of=${schedule} reload=${state.reload} gone=${() => navigate('/schedules')} />`}>
      ${schedule.paused ? html`<${Badge} word="paused" />` : null}<//>
    <div class="grid">
      <${Section} title="What it says"><${Facts} pairs=${[
        ['When', html`<${When} of=${schedule} />`],
        ['Job', html`<${Job} of=${schedule} />`],
        [
          'After a gap',
          schedule.catch_up === false ? 'no job for moments over a minute ago' : 'one job for all that was missed',
        ],
        ['Made', made(schedule)],
      ]} /><//>
      <${Section} title="Next">${
        schedule.next?.length
          ? html`<ul class="plain">${schedule.next.map((ms, i) => html`<li>${moment(ms)}${i ? null : html` <span class="muted"><${Until} ms=${ms} /></span>`}</li>`)}</ul>`
          : html`<p class="muted">${schedule.paused ? 'Nothing while it is paused.' : 'Never again.'}</p>`
      }<//>
      <${Section} title="Job"><${Tree} value=${{ ...schedule.job, argument: schedule.argument ?? null }} label="Job" /><//>
    </div>
    <${Section} title="Last jobs"><${Table} label="Jobs that it made" columns=${RUNS} rows=${schedule.runs || []} rowKey=${(run) => run.id}
      empty=${html`<${Empty}>It has made none yet.<//>`} /><//>`}<//>`;
}
