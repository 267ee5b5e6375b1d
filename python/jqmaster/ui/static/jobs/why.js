// Why a job waits, in plain words: the strongest reason first, with what can be done about it.
import { api, path } from '../api.js';
import { badge } from '../components/badge.js';
import { meter } from '../components/bar.js';
import { act } from '../components/toast.js';
import { onHold } from '../constraints.js';
import { operatorButton as button, h } from '../dom.js';
import { amount, count, cut, duration, jobs as inJobs, now, until } from '../format.js';
import { link, withQuery } from '../router.js';

const line = (kind, ...content) => h('div', { class: `alert why is-${kind}` }, content);

function keyText(by) {
  return by === undefined ? '' : typeof by === 'string' ? by : JSON.stringify(by);
}

/** One constraint: what it allows, and how much of that is in use. */
function limit(one) {
  const parts = [];
  if (one.concurrency)
    parts.push(h('div', { class: 'why-use' }, h('span', {}, 'at once'), meter(one.running, one.concurrency, 'in use')));
  if (one.rate) {
    const much = `${count(one.rate.limit)} in ${duration(one.rate.period * 1000)}`;
    parts.push(
      one.starts === undefined
        ? h('div', { class: 'why-use' }, h('span', {}, `starts: ${much}, evenly`))
        : h(
            'div',
            { class: 'why-use' },
            h('span', {}, one.cost === undefined ? `starts: ${much}` : `rate: ${much}`),
            meter(one.starts, one.rate.limit, one.cost === undefined ? '' : 'used'),
          ),
    );
  }
  return parts;
}

/** What closes a constraint, and when it opens as far as that is known. */
function closing(one) {
  const isFull = one.concurrency && one.running >= one.concurrency;
  const freed = one.order
    ? 'when the job that has its place has ended for good, which keeps it while it waits for a retry as well'
    : 'when one of those that have a place ends';
  const hold = onHold(one);
  if (hold)
    return ['is on hold.', [' It opens ', until(one.opens_ms ?? hold), isFull ? `, but then only ${freed}.` : '.']];
  if (isFull)
    return [
      'is full.',
      [
        one.order ? ' It is in strict order: it opens ' : ' It opens ',
        freed,
        one.opens_ms ? [', and its rate has room ', until(one.opens_ms)] : '',
        '.',
      ],
    ];
  if (!one.opens_ms) return ['has no room.', ''];
  if (one.cost === undefined) return ['has no room.', [' It has room again ', until(one.opens_ms), '.']];
  const needs = ` This job needs ${amount(one.cost)}`;
  // It would fit: a larger one has found no room before.
  if (one.starts + one.cost <= one.rate.limit)
    return [
      'has no room.',
      [`${needs}, but what is left is kept for a job that needs more. It opens `, until(one.opens_ms), '.'],
    ];
  return ['has no room.', [`${needs}: there is room for that `, until(one.opens_ms), ' at the earliest.']];
}

function constraintLine(one, e) {
  const key = keyText(one.by);
  const target = path`/constraint/${one.id}`;
  const name = [link(target, one.id), key ? [' for ', h('code', {}, cut(key, 60))] : ''];
  // Open with all places taken: one of them is this job's.
  if (one.open)
    return line(
      'ok',
      h(
        'p',
        {},
        'Constraint ',
        name,
        one.concurrency && one.running >= one.concurrency ? ' has a place that this job keeps.' : ' has room.',
      ),
      limit(one),
    );
  const [state, opens] = closing(one);
  const jobs = (status, text) => [link(withQuery('/jobs', { status, queue: e.queue }), text), ' · '];
  return line(
    'full',
    h('p', {}, h('b', {}, 'Constraint ', name, ` ${state}`), opens),
    limit(one),
    h(
      'p',
      {},
      one.concurrency && e.running ? jobs('running', 'What runs in this queue') : '',
      one.order ? jobs('retrying', 'What is to be retried') : '',
      link(target, 'Look at the constraint'),
    ),
  );
}

function servedLine(e) {
  const runs = e.running ? `; ${inJobs(e.running)} of it ${e.running === 1 ? 'runs' : 'run'}` : '';
  if (e.workers)
    return line(
      'ok',
      h(
        'p',
        {},
        `${count(e.workers)} registered ${e.workers === 1 ? 'worker serves' : 'workers serve'} its queue${runs}.`,
      ),
    );
  if (e.waiting) return line('ok', h('p', {}, `A worker waits for jobs of its queue${runs}.`));
  if (e.running)
    return line(
      'note',
      h(
        'p',
        {},
        `No worker waits for jobs of its queue now, but ${inJobs(e.running)} of it ${e.running === 1 ? 'runs' : 'run'}: who runs ${e.running === 1 ? 'it' : 'them'} may take the next.`,
      ),
    );
  return line(
    'problem',
    h(
      'p',
      {},
      h('b', {}, 'No worker is seen that serves its queue:'),
      ' none is registered for it, none waits for its jobs, none runs any. ',
      link('/workers', 'Workers'),
    ),
  );
}

function queued(e, changed) {
  const lines = [];
  if (e.paused) {
    lines.push(
      line(
        'paused',
        h(
          'p',
          {},
          h('b', {}, 'Its queue ', link(path`/queue/${e.queue}`, e.queue), ' is paused.'),
          ' Nothing in it starts. ',
        ),
        button(
          'Resume the queue',
          async () => {
            if (await act(() => api.post(path`/queue/${e.queue}/resume`), `Queue ${e.queue} goes on.`)) changed();
          },
          { class: 'primary small' },
        ),
      ),
    );
  }
  const limits = e.constraints || [];
  for (const one of limits) if (!one.open) lines.push(constraintLine(one, e));
  const served = servedLine(e);
  const isServed = e.workers || e.waiting || e.running;
  if (!isServed) lines.push(served);
  if (e.ahead) {
    lines.push(
      line(
        'note',
        h(
          'p',
          {},
          h('b', {}, `${inJobs(e.ahead)} ${e.ahead === 1 ? 'comes' : 'come'} before it.`),
          ' ',
          link(withQuery('/jobs', { queue: e.queue, status: 'queued' }), 'See them in order'),
        ),
      ),
    );
  }
  if (!lines.length) {
    lines.push(
      line(
        'ok',
        h(
          'p',
          {},
          h('b', {}, 'Nothing holds it: it is the next of its queue.'),
          e.running ? ' It starts as soon as a worker has room.' : ' It should start any moment.',
        ),
      ),
    );
  }
  if (isServed) lines.push(served);
  for (const one of limits) if (one.open) lines.push(constraintLine(one, e));
  return lines;
}

function timed(e, job) {
  // Not `start_ms`: that is when its constraints open, too.
  const at = job.due_ms || e.start_ms;
  const when = at > now() ? ['due ', until(at)] : 'due, and about to become ready';
  if (e.status === 'retrying') {
    const left = job.max_retry - job.retry_count + 1;
    return [
      line(
        'retrying',
        h(
          'p',
          {},
          h('b', {}, 'It failed and waits for its next attempt, ', when, '.'),
          ` ${count(job.retry_count)} failed so far; ${left > 0 ? `${count(left)} ${left === 1 ? 'attempt is' : 'attempts are'} left` : 'none is left'}.`,
        ),
        job.message ? h('p', { class: 'muted' }, 'Last: ', cut(job.message, 300)) : null,
      ),
    ];
  }
  return [
    line(
      'scheduled',
      h(
        'p',
        {},
        h('b', {}, 'Its time has not come: it is ', when, '.'),
        job.schedule ? [' It was made by the schedule ', link('/schedules', job.schedule), '.'] : '',
      ),
    ),
  ];
}

function blocked(job, others, changed) {
  const ids = job.waits_for || [];
  const bad = ids.filter((id) => ['error', 'cancelled'].includes(others.get(id)?.status));
  const first = line(
    'blocked',
    h(
      'p',
      {},
      h('b', {}, `It waits for ${inJobs(ids.length)}${ids.length >= 100 ? ' or more' : ''} to be done.`),
      ' See below.',
    ),
  );
  if (!bad.length) return [first];
  return [
    line(
      'problem',
      h(
        'p',
        {},
        h(
          'b',
          {},
          `${inJobs(bad.length)} it waits for ${bad.length === 1 ? 'has' : 'have'} failed or ${bad.length === 1 ? 'was' : 'were'} cancelled.`,
        ),
        ` It goes on waiting until ${bad.length === 1 ? 'that was retried and is' : 'those were retried and are'} done: `,
      ),
      h(
        'ul',
        { class: 'sample' },
        bad
          .slice(0, 5)
          .map((id) =>
            h(
              'li',
              {},
              badge(others.get(id).status),
              ' ',
              link(path`/job/${id}`, cut(others.get(id).name, 60)),
              others.get(id).message ? h('span', { class: 'muted' }, ` ${cut(others.get(id).message, 120)}`) : null,
            ),
          ),
      ),
      button(
        bad.length === 1 ? 'Retry it' : `Retry all ${bad.length}`,
        async () => {
          const say = ({ jobs }) =>
            jobs.includes('queued') ? 'In the queue again.' : 'It cannot be retried any more.';
          if (await act(() => api.post('/jobs/retry', { ids: bad }), say)) changed();
        },
        { class: 'primary small' },
      ),
    ),
    first,
  ];
}

/** Elements that say why; none for a job that does not wait. others: documents by id, of those it depends on. */
export function why(explanation, job, others, changed) {
  const e = explanation;
  if (e.status === 'queued') return queued(e, changed);
  if (e.status === 'blocked') return blocked(job, others, changed);
  if (e.status !== 'scheduled' && e.status !== 'retrying') return [];
  const lines = timed(e, job);
  // What would hold it then, as far as it is so now.
  if (e.paused || (e.constraints || []).some((one) => !one.open))
    lines.push(...queued({ ...e, ahead: 0 }, changed).slice(0, -1));
  return lines;
}
