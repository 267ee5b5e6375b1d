// What happened to a job: a strip to scale, and a list of its attempts with how long each took and what came between.
import { h, svg } from '../dom.js';
import { ago, count, cut, duration, moment, now } from '../format.js';
import { link } from '../router.js';

const KIND = {
  done: 'done',
  failed: 'error',
  lapsed: 'error',
  released: 'cancelled',
  moved: 'scheduled',
  blocked: 'blocked',
  cancelled: 'cancelled',
};
const WORDS = {
  done: 'done',
  failed: 'failed',
  lapsed: 'its lease ran out',
  released: 'given back',
  moved: 'went on elsewhere',
  blocked: 'waits for others',
  cancelled: 'cancelled',
  expired: 'expired before it started',
  dependency: 'ended, because a job it waited for failed',
};

/** Attempts [{attempt, worker, from, to?, event, …}] and what stands between them. */
export function attempts(events) {
  const parts = [];
  for (const event of events) {
    if (event.event === 'started') parts.push({ ...event, from: event.time_ms, event: 'running' });
    else {
      const last = parts.at(-1);
      if (event.attempt && last?.event === 'running' && last.attempt === event.attempt)
        Object.assign(last, event, { from: last.from, to: event.time_ms });
      else parts.push({ ...event, at: event.time_ms });
    }
  }
  return parts;
}

function strip(parts, end) {
  const begin = parts[0].from ?? parts[0].at;
  const span = Math.max(1, end - begin);
  const x = (ms) => `${(((ms - begin) / span) * 100).toFixed(3)}%`;
  const drawing = svg(
    'svg',
    {
      class: 'strip',
      role: 'img',
      width: '100%',
      height: 18,
      'aria-label': `${duration(span)} from the first event to the last`,
    },
    svg('rect', { class: 'strip-ground', x: 0, y: 5, width: '100%', height: 8, rx: 4 }),
  );
  for (const part of parts) {
    if (!part.from) continue;
    const share = Math.max(0.5, ((Math.min(end, part.to ?? end) - part.from) / span) * 100);
    drawing.append(
      svg(
        'rect',
        {
          class: `strip-part is-${KIND[part.event] || 'running'}`,
          x: x(Math.min(part.from, begin + span * 0.995)),
          y: 2,
          width: `${share.toFixed(3)}%`,
          height: 14,
          rx: 2,
        },
        svg(
          'title',
          {},
          `Attempt ${part.attempt}: ${WORDS[part.event] || part.event}, ${duration((part.to ?? end) - part.from)}`,
        ),
      ),
    );
  }
  return h(
    'div',
    { class: 'strip-box' },
    drawing,
    h(
      'div',
      { class: 'strip-ends muted' },
      h('span', {}, moment(begin)),
      h('span', {}, duration(span)),
      h('span', {}, moment(end)),
    ),
  );
}

function gap(ms) {
  return ms >= 1 ? h('li', { class: 'gap muted' }, `${duration(ms)} of waiting`) : null;
}

function entry(part) {
  if (part.at) {
    return h(
      'li',
      { class: `event is-${KIND[part.event] || (part.event === 'enqueued' ? 'queued' : 'error')}` },
      h('b', {}, part.event === 'enqueued' ? 'Enqueued' : WORDS[part.event] || part.event),
      ' ',
      h('span', { class: 'muted' }, ago(part.at)),
      part.message ? h('p', { class: 'anywhere' }, part.message) : null,
    );
  }
  const worker = part.worker_id;
  const took =
    part.to === undefined ? ['for ', duration(now() - part.from)] : ['after ', duration(part.to - part.from)];
  return h(
    'li',
    { class: `event is-${KIND[part.event] || 'running'}` },
    h('b', {}, `Attempt ${part.attempt}`),
    ' ',
    part.event === 'running' ? 'runs ' : `${WORDS[part.event]} `,
    took,
    h(
      'span',
      { class: 'muted' },
      ' · ',
      h('span', { title: moment(part.from) }, 'started ', ago(part.from)),
      worker ? [' · by ', /^w[0-9a-f]{14}$/.test(worker) ? link('/workers', worker) : cut(worker, 60)] : null,
      part.group && part.group !== part.reason ? [' · ', cut(part.group, 60)] : null,
      part.reason && part.reason !== 'other' ? ` · ${part.reason}` : null,
    ),
    part.message ? h('p', { class: 'anywhere' }, part.message) : null,
  );
}

/** The elements for a history. `job`: its document. */
export function timeline(history, job) {
  const parts = attempts(history.events);
  if (!parts.length) return [h('p', { class: 'muted' }, 'Nothing is known of it.')];
  const last = parts.at(-1);
  const isOver = job.ended_ms !== undefined;
  const end = isOver ? Math.max(job.ended_ms, last.to ?? last.from ?? last.at) : now();
  const list = h('ol', { class: 'events' });
  let before = null;
  for (const part of parts) {
    const from = part.from ?? part.at;
    if (before !== null) list.append(gap(from - before) || '');
    list.append(entry(part));
    before = part.to ?? part.at ?? null;
  }
  return [
    parts.some((part) => part.from) ? strip(parts, end) : null,
    history.forgotten
      ? h('p', { class: 'muted' }, `${count(history.forgotten)} attempts before these are not kept.`)
      : null,
    list,
  ];
}
