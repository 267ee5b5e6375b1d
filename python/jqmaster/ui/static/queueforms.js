// What is asked before a queue is limited, gets settings of its own, is emptied or forgotten.
import { toAllThatMatch } from './acting.js';
import { api } from './api.js';
import { count } from './format.js';
import { act, confirm, fault, form } from './forms.js';
import { STATES, toQueue, WAITING } from './parts.js';
import { sumOf } from './queues.js';
import { navigate } from './view.js';

export const limit = (queue) =>
  form({
    title: `How many jobs may wait in ${queue.name}`,
    body: 'Enqueueing beyond it is refused. 0: no limit.',
    fields: [{ name: 'max_waiting', label: 'Waiting jobs', type: 'number', value: queue.max_waiting, required: true }],
    submit: (values) => api.post(toQueue(queue.name), { known: true, ...values }),
  });

export function purge(queue) {
  const choices = [WAITING, ...STATES.filter((state) => state !== 'running').map((state) => [state])];
  return form({
    title: `Discard jobs of ${queue.name}`,
    body: 'Waiting jobs are cancelled; the records of all of them are removed. It cannot be undone.',
    action: 'Discard',
    danger: true,
    fields: [
      {
        name: 'status',
        label: 'Which',
        type: 'select',
        options: choices.map((states) => [
          states.join(),
          `${states.length > 1 ? 'All that wait' : states[0]} (${count(sumOf(queue, states))})`,
        ]),
      },
      { name: 'typed', label: 'To confirm, type the name of the queue', required: true },
    ],
    submit: async ({ status, typed }) => {
      if (typed !== queue.name) throw fault('typed', 'This is not its name.');
      const states = status.split(',');
      const where = { queue: queue.name, status: states };
      return toAllThatMatch('/jobs/discard', { where });
    },
  });
}

export async function forget(queue) {
  const isSure = await confirm({
    title: `Forget ${queue.name}?`,
    action: 'Forget',
    body: 'A queue without jobs goes, with its settings and statistics. It comes back with the next job for it.',
  });
  if (isSure && (await act(() => api.delete(toQueue(queue.name)), `${queue.name} is forgotten.`))) navigate('/queues');
}

/** Settings of its own; an empty field: as the namespace has it. */
export async function ownSettings(queue) {
  const settings = await api.post('/config', { describe: true });
  const own = queue.settings || {};
  return form({
    title: `Settings of ${queue.name}`,
    body: 'Empty: as for all queues.',
    wide: true,
    fields: settings
      .filter((setting) => setting.queues)
      .map(({ name, unit, meaning, value }) => ({
        name,
        label: name,
        unit,
        type: 'number',
        value: own[name],
        hint: meaning,
        placeholder: String(value),
      })),
    submit: (values) => {
      const unset = Object.keys(own).filter((name) => !(name in values));
      const body = { ...(Object.keys(values).length ? { set: values } : {}), ...(unset.length ? { unset } : {}) };
      if (!Object.keys(body).length) return true;
      return api.post(toQueue(queue.name), { known: true, ...body }).catch((problem) => {
        throw Object.assign(problem, { field: problem.field?.replace(/^set\./, '') });
      });
    },
  });
}
