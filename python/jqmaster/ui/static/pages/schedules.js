// Recurring jobs: when they come next, and what can be done with them.
import { api, path } from '../api.js';
import { badge } from '../components/badge.js';
import { confirm, form } from '../components/dialog.js';
import { table } from '../components/table.js';
import { act, toast } from '../components/toast.js';
import { operatorButton as button, h } from '../dom.js';
import { ago, count, duration, moment } from '../format.js';
import { every } from '../live.js';
import { cronInWords, zoneOf } from '../rhythm.js';
import { link } from '../router.js';

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

function when(schedule) {
  if (!schedule.cron) return `every ${duration(schedule.every * 1000)}`;
  const words = cronInWords(schedule.cron);
  return [
    words ? h('div', {}, words) : null,
    h('code', { class: `nowrap ${words ? 'muted' : ''}` }, schedule.cron),
    h('span', { class: 'muted nowrap' }, ` ${zoneOf(schedule)}`),
  ];
}

/** The last jobs as small bars, the latest at the right: as high as they took long, in the colour of their state. */
function runs(schedule) {
  const list = [...(schedule.runs ?? [])].reverse();
  if (!list.length) return h('span', { class: 'zero' }, '–');
  const took = (run) => (run.started_ms && run.ended_ms ? run.ended_ms - run.started_ms : null);
  const longest = Math.max(1, ...list.map((run) => took(run) ?? 0));
  const bars = list.map((run, i) => {
    const ms = took(run);
    const bar = h('span', { class: `run-bar is-${run.status ?? 'gone'}` });
    bar.style.height = `${ms === null ? 40 : 20 + (80 * ms) / longest}%`;
    const text = [run.status ?? 'not known any more', ms === null ? '' : `, took ${duration(ms)}`].join('');
    const said = {
      title: `${text}${run.ended_ms ? `\n${moment(run.ended_ms)}` : ''}`,
      'aria-label': `Job ${run.id}: ${text}`,
    };
    // One stop for Tab; the arrows go on from there.
    const stop = { tabindex: i === list.length - 1 ? 0 : -1, data: { key: run.id } };
    return run.status
      ? h('a', { href: `/ui${path`/job/${run.id}`}`, ...said, ...stop }, bar)
      : h('span', { role: 'img', ...said }, bar);
  });
  const keydown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const links = [...event.currentTarget.querySelectorAll('a')];
    const next = links[links.indexOf(event.target) + step];
    if (!step || !next) return;
    event.preventDefault();
    next.focus();
  };
  return h(
    'span',
    { class: 'runs', role: 'group', 'aria-label': `Last jobs of ${schedule.id}`, on: { keydown } },
    bars,
  );
}

const begin = () => [
  h('p', {}, 'No recurring jobs. Make one here, or:'),
  h('p', {}, h('code', {}, "jqmaster schedules set nightly report --cron '0 3 * * *'")),
];

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

export async function render(view) {
  const list = table({
    label: 'Schedules',
    key: (one) => one.id,
    empty: begin,
    load: async (cursor, signal) => {
      const page = await api.get('/schedules', { cursor, count: 50, next: 3, runs: 20 }, { signal });
      return { rows: page.schedules, cursor: page.cursor };
    },
    columns: [
      { title: 'Schedule', kind: 'wide', cell: (one) => [one.id, one.paused ? [' ', badge('paused')] : null] },
      { title: 'When', cell: when },
      {
        title: 'Job',
        kind: 'wide',
        hide: 'narrow',
        cell: (one) => [
          one.job.name,
          one.job.queue && one.job.queue !== one.job.name
            ? h('span', { class: 'muted' }, ' in ', link(path`/queue/${one.job.queue}`, one.job.queue))
            : null,
        ],
      },
      {
        title: 'Next',
        cell: (one) => {
          if (!one.next_ms) return h('span', { class: 'zero' }, one.paused ? '–' : 'never');
          const then = one.next?.slice(1).map((ms) => moment(ms).slice(5, 16));
          return [
            ago(one.next_ms),
            then?.length
              ? h('div', { class: 'muted hide-narrow nowrap', title: then.join('\n') }, `then ${then[0]}`)
              : null,
          ];
        },
      },
      { title: 'Last jobs', cell: runs },
      {
        title: 'Made',
        kind: 'number',
        hide: 'narrow',
        cell: (one) => [count(one.made), one.limit ? h('span', { class: 'muted' }, ` of ${count(one.limit)}`) : null],
      },
      {
        title: '',
        kind: 'actions',
        cell: (one) => [
          button(
            'Run now',
            async () => {
              await act(
                () => api.post(path`/schedule/${one.id}/run`),
                ({ job_id: id, created }) =>
                  created ? `${one.id} runs now: job ${id}.` : `${one.id}: job ${id} has its unique key already.`,
              );
              await list.refresh();
            },
            { class: 'small', 'aria-label': `Run now: ${one.id}`, title: 'Its moments go on as if this job were none' },
          ),
          button(
            one.paused ? 'Resume' : 'Pause',
            async () => {
              const put = (paused) => api.put(path`/schedule/${one.id}`, { ...given(one), paused });
              await act(() => put(!one.paused), one.paused ? `${one.id} goes on.` : `${one.id} is paused.`, {
                undo: () => put(one.paused).then(() => list.refresh()),
              });
              await list.refresh();
            },
            { class: 'small', 'aria-label': `${one.paused ? 'Resume' : 'Pause'} ${one.id}` },
          ),
          button('Change', async () => done(await edit(one), `${one.id} is changed.`), {
            class: 'small',
            'aria-label': `Change ${one.id}`,
          }),
          button(
            'Delete',
            async () => {
              const isSure = await confirm({
                title: `Delete ${one.id}?`,
                action: 'Delete',
                body: 'Jobs that it has made stay.',
              });
              if (!isSure) return;
              // One with a limit would begin to count anew.
              const undo = one.limit ? undefined : () => api.put(path`/schedule/${one.id}`, given(one)).then(done);
              await done(await act(() => api.delete(path`/schedule/${one.id}`), `${one.id} is deleted.`, { undo }));
            },
            { class: 'small danger', 'aria-label': `Delete ${one.id}` },
          ),
        ],
      },
    ],
  });

  async function done(answer, text) {
    if (!answer) return;
    if (text) toast(text);
    await list.refresh();
  }

  view.append(
    h(
      'div',
      { class: 'head' },
      h('h1', {}, 'Schedules'),
      h(
        'div',
        { class: 'actions' },
        button('New schedule', async () => done(await edit(), 'The schedule is in force.'), { class: 'primary' }),
      ),
    ),
    list.element,
  );
  await list.refresh();
  return every(5000, () => list.refresh());
}
