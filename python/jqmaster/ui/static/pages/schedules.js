// Recurring jobs: when they come next, and what can be done with them.
import { api, path } from '../api.js';
import { Badge } from '../components/badge.js';
import { confirm, form } from '../components/dialog.js';
import { Button, Empty, Head, Loaded } from '../components/parts.js';
import { Pager, Table, usePages } from '../components/rows.js';
import { Ago } from '../components/time.js';
import { act, toast } from '../components/toast.js';
import { count, duration, moment } from '../format.js';
import { cronInWords, zoneOf } from '../rhythm.js';
import { html, Link } from '../view.js';

const SPEC = [
  'every',
  'offset',
  'cron',
  'utc_offset',
  'timezone',
  'tz',
  'start',
  'end',
  'limit',
  'catch_up',
  'backlog',
  'paused',
  'job',
  'argument',
];
const given = (schedule) =>
  Object.fromEntries(
    SPEC.filter((name) => schedule[name] !== undefined && schedule[name] !== null).map((name) => [
      name,
      schedule[name],
    ]),
  );

function When({ of }) {
  if (!of.cron) return `every ${duration(of.every * 1000)}`;
  const words = cronInWords(of.cron);
  return html`${words ? html`<div>${words}</div>` : null}
    <code class=${`nowrap ${words ? 'muted' : ''}`}>${of.cron}</code><span class="muted nowrap"> ${zoneOf(of)}</span>`;
}

// The arrows go from run to run.
function walk(event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const links = [...event.currentTarget.querySelectorAll('a')];
  const next = links[links.indexOf(event.target) + step];
  if (!step || !next) return;
  event.preventDefault();
  next.focus();
}

/** The last jobs as small bars, the latest at the right: as high as they took long, in the colour of their state. */
function Runs({ of }) {
  const list = [...(of.runs ?? [])].reverse();
  if (!list.length) return html`<span class="zero">–</span>`;
  const took = (run) => (run.started_ms && run.ended_ms ? run.ended_ms - run.started_ms : null);
  const longest = Math.max(1, ...list.map((run) => took(run) ?? 0));
  const bars = list.map((run, i) => {
    const ms = took(run);
    const height = `${ms === null ? 40 : 20 + (80 * ms) / longest}%`;
    const bar = html`<span class=${`run-bar is-${run.status ?? 'gone'}`} style=${{ height }}></span>`;
    const text = [run.status ?? 'not known any more', ms === null ? '' : `, took ${duration(ms)}`].join('');
    const said = {
      key: run.id,
      title: `${text}${run.ended_ms ? `\n${moment(run.ended_ms)}` : ''}`,
      'aria-label': `Job ${run.id}: ${text}`,
    };
    if (!run.status) return html`<span role="img" ...${said}>${bar}</span>`;
    // One stop for Tab.
    const tabindex = i === list.length - 1 ? 0 : -1;
    return html`<${Link} to=${path`/job/${run.id}`} tabindex=${tabindex} ...${said}>${bar}<//>`;
  });
  return html`<span class="runs" role="group" aria-label=${`Last jobs of ${of.id}`} onKeyDown=${walk}>${bars}</span>`;
}

function Next({ of }) {
  if (!of.next_ms) return html`<span class="zero">${of.paused ? '–' : 'never'}</span>`;
  const then = of.next?.slice(1).map((ms) => moment(ms).slice(5, 16)) ?? [];
  const more = html`<div class="muted hide-narrow nowrap" title=${then.join('\n')}>then ${then[0]}</div>`;
  return html`<${Ago} ms=${of.next_ms} />${then.length ? more : null}`;
}

function edit(old) {
  return form({
    title: old ? `Change ${old.id}` : 'New schedule',
    wide: true,
    action: old ? 'Replace' : 'Create',
    body: 'Either an interval or a cron line.',
    fields: [
      ...(old ? [] : [{ name: 'id', label: 'Name', required: true }]),
      { name: 'every', label: 'Every', unit: 'seconds', type: 'number', value: old?.every },
      {
        name: 'cron',
        label: 'Cron',
        value: old?.cron,
        hint: 'minute hour day month weekday, or @hourly, @daily, @weekly, @monthly, @yearly',
      },
      {
        name: 'timezone',
        label: 'Time zone',
        value: old?.timezone,
        hint: 'such as Europe/Berlin, with cron',
      },
      {
        name: 'utc_offset',
        label: 'Clock ahead of UTC by',
        unit: 'minutes, with cron',
        type: 'number',
        value: old?.utc_offset || undefined,
      },
      {
        name: 'job',
        label: 'Job',
        type: 'json',
        rows: 5,
        required: true,
        value: old ? old.job : { name: 'report' },
        hint: 'name, queue, priority, max_retry, … as for enqueueing',
      },
      { name: 'argument', label: 'Argument', type: 'json', rows: 4, value: old ? old.argument : undefined },
      { name: 'limit', label: 'Jobs in all, at most', type: 'number', value: old?.limit },
      {
        name: 'catch_up',
        label: 'After a gap',
        type: 'select',
        value: old?.catch_up || 'one',
        options: [
          ['one', 'one job for all that was missed'],
          ['all', 'a job for each moment missed'],
          ['none', 'no job for moments over a minute ago'],
        ],
      },
      { name: 'paused', label: 'Paused', type: 'checkbox', value: old?.paused },
    ],
    submit: ({ id, ...values }) => {
      // What the form does not show stays; what was emptied goes.
      const kept = old
        ? Object.fromEntries(
            Object.entries(given(old)).filter(([name]) => ['start', 'end', 'backlog', 'offset'].includes(name)),
          )
        : {};
      if (values.cron) delete kept.offset;
      return api.put(path`/schedule/${old ? old.id : id}`, { ...kept, ...values }).catch((problem) => {
        throw Object.assign(problem, { field: problem.field?.startsWith('job') ? 'job' : problem.field });
      });
    },
  });
}

async function run(one) {
  await act(
    () => api.post(path`/schedule/${one.id}/run`),
    ({ job_id: id, created }) =>
      created ? `${one.id} runs now: job ${id}.` : `${one.id}: job ${id} has its unique key already.`,
  );
}

async function pause(one, reload) {
  const put = (paused) => api.put(path`/schedule/${one.id}`, { ...given(one), paused });
  await act(() => put(!one.paused), one.paused ? `${one.id} goes on.` : `${one.id} is paused.`, {
    undo: () => put(one.paused).then(reload),
  });
}

async function remove(one, reload) {
  const isSure = await confirm({
    title: `Delete ${one.id}?`,
    action: 'Delete',
    body: 'Jobs that it has made stay.',
  });
  if (!isSure) return;
  // One with a limit would begin to count anew.
  const undo = one.limit ? undefined : () => api.put(path`/schedule/${one.id}`, given(one)).then(reload);
  await act(() => api.delete(path`/schedule/${one.id}`), `${one.id} is deleted.`, { undo });
}

async function change(one) {
  if (await edit(one)) toast(one ? `${one.id} is changed.` : 'The schedule is in force.');
}

function columns(reload) {
  const action = (text, does, one, rest = {}) => html`<${Button} needs="operator" class="small"
    aria-label=${`${text} ${one.id}`} onClick=${() => does(one, reload).then(reload)} ...${rest}>${text}<//>`;
  return [
    {
      title: 'Schedule',
      kind: 'wide',
      cell: (one) => html`${one.id}${one.paused ? html` <${Badge} word="paused" />` : null}`,
    },
    { title: 'When', cell: (one) => html`<${When} of=${one} />` },
    {
      title: 'Job',
      kind: 'wide',
      hide: 'narrow',
      cell: ({ job: { name, queue } }) =>
        html`${name}${
          queue && queue !== name
            ? html`<span class="muted"> in <${Link} to=${path`/queue/${queue}`}>${queue}<//></span>`
            : null
        }`,
    },
    { title: 'Next', cell: (one) => html`<${Next} of=${one} />` },
    { title: 'Last jobs', cell: (one) => html`<${Runs} of=${one} />` },
    {
      title: 'Made',
      kind: 'number',
      hide: 'narrow',
      cell: ({ made, limit }) =>
        html`${count(made)}${limit ? html`<span class="muted"> of ${count(limit)}</span>` : null}`,
    },
    {
      title: '',
      kind: 'actions',
      cell: (one) => [
        action('Run now', run, one, {
          'aria-label': `Run now: ${one.id}`,
          title: 'Its moments go on as if this job were none',
        }),
        action(one.paused ? 'Resume' : 'Pause', pause, one),
        action('Change', change, one),
        action('Delete', remove, one, { class: 'small danger' }),
      ],
    },
  ];
}

export function Page() {
  const load = (cursor, signal) => api.get('/schedules', { cursor, count: 50, next: 3, runs: 20 }, { signal });
  const { pager, ...state } = usePages(load, { ms: 5000 });
  const { reload } = state;
  const create = html`<${Button} needs="operator" class="primary"
    onClick=${() => change().then(reload)}>New schedule<//>`;
  const empty = html`<${Empty} command="jqmaster schedules set nightly report --cron '0 3 * * *'">
    No recurring jobs. Make one here, or:<//>`;
  return html`<${Head} title="Schedules" actions=${create} />
    <${Loaded} of=${state}>${({ schedules, cursor }) => html`<${Table} label="Schedules" columns=${columns(reload)}
      rows=${schedules} rowKey=${(one) => one.id} empty=${pager.back || cursor ? null : empty}>
      <${Pager} of=${pager} />
    <//>`}<//>`;
}
