// One queue: what is in it, how it does, and all that can be done with it.
import { api, path } from '../api.js';
import { badge, STATES } from '../components/badge.js';
import { meter } from '../components/bar.js';
import { chart } from '../components/chart.js';
import { confirm } from '../components/dialog.js';
import { act, toast } from '../components/toast.js';
import { operatorButton as button, fill, h } from '../dom.js';
import { brief, count, duration, now } from '../format.js';
import { every } from '../live.js';
import { forget, limit, ownSettings, pause, purge, WAITING } from '../queues.js';
import { BASE, link, navigate, withQuery } from '../router.js';

const MINUTE = 60000;
const HOUR = 3600000;

function filled(stats, width, from, to) {
  const by = new Map(stats.map((one) => [one.begin_ms, one]));
  const found = [];
  for (let ms = from; ms < to; ms += width) found.push([ms, by.get(ms)]);
  return found;
}

function tiles(queue) {
  return STATES.map((state) =>
    h(
      'a',
      { class: 'tile', href: BASE + withQuery('/jobs', { queue: queue.name, status: state }) },
      h('span', { class: 'tile-name' }, h('span', { class: `dot is-${state}` }), state),
      h('div', { class: 'tile-value' }, brief(queue[state])),
    ),
  );
}

function facts(queue) {
  const waiting = WAITING.reduce((sum, state) => sum + queue[state], 0);
  const own = Object.entries(queue.settings || {});
  return h(
    'dl',
    { class: 'facts' },
    h('dt', {}, 'May wait'),
    h('dd', {}, queue.max_waiting ? meter(waiting, queue.max_waiting) : 'any number'),
    h('dt', {}, 'Own settings'),
    h(
      'dd',
      {},
      own.length ? own.map(([name, value], i) => [i ? ', ' : '', h('code', {}, `${name} ${value}`)]) : 'none',
    ),
    h('dt', {}, 'Fair by'),
    h(
      'dd',
      {},
      queue.fair
        ? queue.fair.map((level) =>
            h(
              'div',
              {},
              h('code', {}, String(level.by)),
              level.weights
                ? h(
                    'span',
                    { class: 'muted' },
                    ` ${Object.entries(level.weights)
                      .slice(0, 8)
                      .map(([value, weight]) => `${value}: ${weight}`)
                      .join(', ')}`,
                  )
                : null,
            ),
          )
        : '–',
    ),
  );
}

function names(series, queue) {
  if (!series.length) return h('p', { class: 'muted' }, 'Nothing happened in a day.');
  const number = (value) => h('td', { class: 'number' }, value ? count(value) : h('span', { class: 'zero' }, '0'));
  return h(
    'div',
    { class: 'table' },
    h(
      'div',
      { class: 'scroll' },
      h(
        'table',
        { 'aria-label': 'Names' },
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            h('th', {}, 'Name'),
            ['Enqueued', 'Done', 'Failed', 'Wait, median', '99 %', 'Run, median', '99 %'].map((text) =>
              h('th', { class: 'number' }, text),
            ),
          ),
        ),
        h(
          'tbody',
          {},
          series.map((one) =>
            h(
              'tr',
              { tabindex: 0 },
              h('td', { class: 'wide' }, link(withQuery('/jobs', { queue, name: one.name }), one.name)),
              number(one.enqueued),
              number(one.done),
              number(one.failed + one.lapsed + one.error),
              ['wait', 'run'].flatMap((kind) =>
                ['p50', 'p99'].map((at) =>
                  h('td', { class: 'number' }, one[kind].count ? duration(one[kind][at]) : '–'),
                ),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}

export async function render(view, { name }) {
  let queue = await api.get(path`/queue/${name}`);
  const title = h('h1', {}, h('span', { class: 'crumb' }, link('/queues', 'Queues'), ' / '), name, ' ');
  const state = h('span');
  const actions = h('div', { class: 'actions' });
  const top = h('div', { class: 'tiles' });
  const info = h('section', { class: 'panel' });
  const minutes = chart({ title: 'Jobs a minute' });
  const failing = chart({ title: 'Failing, attempts a minute (stacked)', stacked: true });
  const waits = chart({ title: 'Wait until the first start, by the hour', times: true });
  const runs = chart({ title: 'Run, by the hour', times: true });
  const byName = h('section', { class: 'panel' });
  view.append(
    h('div', { class: 'head' }, title, state, actions),
    top,
    h(
      'div',
      { class: 'grid charts' },
      [minutes, failing, waits, runs].map((one) => h('div', { class: 'panel' }, one.element)),
    ),
    info,
    byName,
  );

  async function change(step, text) {
    const answer = await step(queue);
    if (!answer) return;
    if (text) toast(typeof text === 'function' ? text(answer) : text);
    await refresh();
  }

  async function kick() {
    const isSure = await confirm({
      title: `Take ${count(queue.running)} running jobs of ${name} back?`,
      action: 'Take back',
      body: 'Their workers lose them; they wait again, and no retry is spent.',
    });
    if (isSure)
      await act(
        async () => {
          let answer;
          let kicked = 0;
          do {
            answer = await api.post(path`/queue/${name}/kick`, { count: 1000 });
            kicked += answer.kicked;
          } while (answer.more && answer.kicked);
          await refresh();
          return kicked;
        },
        (kicked) => `${count(kicked === true ? 0 : kicked)} jobs were taken back.`,
      );
  }

  function draw() {
    fill(state, queue.paused ? badge('paused') : null);
    fill(top, tiles(queue));
    fill(info, h('h2', {}, 'Limits and settings'), facts(queue));
    const focused = actions.contains(document.activeElement) ? document.activeElement.textContent : null;
    fill(
      actions,
      button(queue.paused ? 'Resume' : 'Pause', () => change(pause), { class: queue.paused ? 'primary' : '' }),
      button('Limit', () => change(limit, 'The limit is set.')),
      button('Settings', () => change(ownSettings, 'The settings are in force.')),
      button('Take back', kick, { disabled: !queue.running, title: 'Take running jobs from their workers' }),
      button('Discard jobs', () => change(purge, (answer) => `${count(answer.discarded)} jobs were discarded.`), {
        class: 'danger',
      }),
      button(
        'Forget',
        async () => {
          if (await forget(queue)) navigate('/queues');
        },
        { class: 'danger' },
      ),
    );
    if (focused) [...actions.children].find((one) => one.textContent === focused)?.focus();
  }

  async function refresh() {
    queue = await api.get(path`/queue/${name}`);
    draw();
  }

  async function statistics() {
    const at = now();
    const fromMinute = (Math.floor(at / MINUTE) - 60) * MINUTE;
    const fromHour = (Math.floor(at / HOUR) - 47) * HOUR;
    const [recent, hours, pairs] = await Promise.all([
      api.get('/stats', { by: 'minute', queue: name, from_ms: fromMinute }),
      api.get('/stats', { by: 'hour', queue: name, from_ms: fromHour }),
      api.get('/stats/series', { by: 'hour', queue: name, from_ms: at - 24 * HOUR, count: 50 }),
    ]);
    const whole = filled(recent.stats, MINUTE, fromMinute, Math.floor(at / MINUTE) * MINUTE);
    const of = (kind) => whole.map(([ms, one]) => [ms, one ? one[kind] : 0]);
    const range = { from: whole[0][0], to: whole.at(-1)[0] };
    minutes.update({
      ...range,
      series: [
        { name: 'enqueued', kind: 'queued', values: of('enqueued') },
        { name: 'done', kind: 'done', values: of('done') },
      ],
    });
    failing.update({
      ...range,
      series: [
        { name: 'retried', kind: 'retrying', values: of('failed') },
        { name: 'lapsed', kind: 'scheduled', values: of('lapsed') },
        { name: 'for good', kind: 'error', values: of('error') },
      ],
    });
    const slots = filled(hours.stats, HOUR, fromHour, at);
    for (const [drawn, kind] of [
      [waits, 'wait'],
      [runs, 'run'],
    ]) {
      const line = (key) => slots.map(([ms, one]) => [ms, one?.[kind].count ? one[kind][key] : 0]);
      drawn.update({
        from: fromHour,
        to: slots.at(-1)[0],
        series: [
          { name: 'median', kind: 'running', values: line('p50') },
          { name: '99 %', kind: 'retrying', values: line('p99') },
        ],
      });
    }
    fill(byName, h('h2', {}, 'Names, in a day'), names(pairs.series, name));
  }

  draw();
  await statistics();
  const stops = [every(3000, refresh), every(20000, statistics)];
  return () => {
    for (const stop of stops) stop();
  };
}
