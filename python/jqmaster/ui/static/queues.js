// What several pages know of queues: finding them by the beginning of their name, and what can be done with one.
import { api, path } from './api.js';
import { confirm, form } from './components/dialog.js';
import { act } from './components/toast.js';
import { h } from './dom.js';
import { count, jobs } from './format.js';
import { BASE, withQuery } from './router.js';

export const WAITING = ['queued', 'scheduled', 'blocked', 'retrying'];

/** A text that comes right before `text`, which itself is the first behind it: lists begin behind their cursor. */
function before(text) {
  const characters = [...text];
  const last = characters.pop().codePointAt(0);
  return `${characters.join('')}${String.fromCodePoint(last === 0xe000 ? 0xd7ff : last - 1)}\u{10ffff}`;
}

/** A page of the queues whose names begin with `prefix`, in order. A cursor of this list is a name. */
export async function queuesFrom(prefix, cursor, size, signal) {
  if (!prefix) {
    const page = await api.get('/queues', { cursor, count: size }, { signal });
    return { rows: page.queues, cursor: page.cursor };
  }
  const page = await api.get('/queues', { cursor: cursor || before(prefix), count: size }, { signal });
  const rows = page.queues.filter((queue) => queue.name.startsWith(prefix));
  return {
    rows,
    cursor: rows.length && page.queues.length && page.queues.at(-1).name.startsWith(prefix) ? page.cursor : '',
  };
}

export async function suggestQueues(text) {
  return (await queuesFrom(text, '', 20)).rows.map((queue) => queue.name);
}

export const pause = (queue) =>
  act(
    () => api.post(path`/queue/${queue.name}/${queue.paused ? 'resume' : 'pause'}`),
    queue.paused ? `${queue.name} goes on.` : `${queue.name} is paused: it takes jobs and starts none.`,
  );

export function limit(queue) {
  return form({
    title: `How many jobs may wait in ${queue.name}`,
    body: 'Whoever enqueues beyond it is refused. 0: no limit.',
    fields: [
      { name: 'max_waiting', label: 'Jobs that wait', type: 'number', value: queue.max_waiting, required: true },
    ],
    submit: (values) => api.patch(path`/queue/${queue.name}`, values),
  });
}

export function purge(queue) {
  const counted = [
    ['queued,scheduled,blocked,retrying', WAITING],
    ...['queued', 'scheduled', 'blocked', 'retrying', 'done', 'error', 'cancelled'].map((state) => [state, [state]]),
  ].map(([states, list]) => [
    states,
    `${list.length > 1 ? 'All that wait' : list[0]} (${count(list.reduce((sum, state) => sum + queue[state], 0))})`,
  ]);
  return form({
    title: `Discard jobs of ${queue.name}`,
    body: 'Jobs that wait are cancelled; the records of all of them are removed at once. This cannot be undone.',
    action: 'Discard',
    danger: true,
    fields: [
      { name: 'status', label: 'Which', type: 'select', options: counted },
      { name: 'typed', label: 'To confirm, type the name of the queue', required: true },
    ],
    submit: async ({ status, typed }) => {
      if (typed !== queue.name) throw Object.assign(new Error('This is not its name.'), { field: 'typed' });
      let discarded = 0;
      for (;;) {
        const answer = await api.delete(path`/queue/${queue.name}/jobs`, { status, timeout: 5 });
        discarded += answer.discarded;
        if (!answer.more) return { discarded };
      }
    },
  });
}

export async function forget(queue) {
  const isSure = await confirm({
    title: `Forget ${queue.name}?`,
    action: 'Forget',
    body: 'A queue without jobs goes, with its settings and statistics. It comes back with the next job for it.',
  });
  return isSure && act(() => api.delete(path`/queue/${queue.name}`), `${queue.name} is forgotten.`);
}

/** Settings of its own; an empty field: as the namespace has it. */
export async function ownSettings(queue) {
  const { settings } = await api.get('/config', { describe: true });
  const usable = settings.filter((one) => one.queues);
  const own = queue.settings || {};
  return form({
    title: `Settings of ${queue.name}`,
    body: 'Empty: as for all queues.',
    wide: true,
    fields: usable.map((one) => ({
      name: one.name,
      label: one.name,
      unit: one.unit,
      type: 'number',
      value: own[one.name],
      hint: one.meaning,
      placeholder: String(one.value),
    })),
    submit: (values) => {
      const unset = Object.keys(own).filter((name) => !(name in values));
      const body = { ...(Object.keys(values).length ? { set: values } : {}), ...(unset.length ? { unset } : {}) };
      return Object.keys(body).length
        ? api.patch(path`/queue/${queue.name}`, body).catch((problem) => {
            throw Object.assign(problem, { field: problem.field?.replace(/^set\./, '') });
          })
        : true;
    },
  });
}

/** A number that leads to the jobs it counts. */
export function counted(queue, state) {
  if (!queue[state]) return h('span', { class: 'zero' }, '0');
  return h(
    'a',
    {
      href: BASE + withQuery('/jobs', { queue: queue.name, status: state }),
      'aria-label': `${jobs(queue[state])} ${state}`,
    },
    count(queue[state]),
  );
}
