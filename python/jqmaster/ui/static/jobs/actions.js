// What can be done to jobs: the same for one, some, and all that match.
import { api } from '../api.js';
import { WAITING } from './where.js';

const PRIORITY = {
  name: 'priority',
  label: 'New priority',
  type: 'number',
  required: true,
  hint: 'The smaller runs first; 0 is usual.',
};

/**
 * states: those it is for. did: what is said afterwards. path: of an API that takes ids and `where`;
 * change(values): or what each job gets. fields: what is asked for first. options(values): more for the API's body.
 */
export const ACTIONS = [
  {
    id: 'retry',
    label: 'Retry',
    did: 'put in the queue again',
    states: ['error', 'cancelled', 'skipped', 'retrying'],
    path: '/jobs/retry',
    what: 'They run again at once, with all their retries; what is known of the last failure stays.',
  },
  {
    id: 'run',
    label: 'Run now',
    did: 'made ready',
    states: ['scheduled', 'retrying'],
    change: () => ({ delay: 0 }),
    what: 'They do not wait for their time any longer.',
  },
  {
    id: 'priority',
    label: 'Change priority',
    did: 'changed',
    states: WAITING,
    fields: [PRIORITY],
    change: ({ priority }) => ({ priority }),
    what: 'Those that wait are put in their new place.',
  },
  {
    id: 'kick',
    label: 'Take from worker',
    did: 'given back to the queue',
    states: ['running'],
    idsPath: '/jobs/kick',
    danger: true,
    what: 'They wait again and lose no retry; their workers are told that they have lost them. What they did so far may happen twice.',
  },
  {
    id: 'cancel',
    label: 'Cancel',
    did: 'cancelled',
    states: [...WAITING, 'running'],
    path: '/jobs/cancel',
    danger: true,
    what: 'They do not run (any more). They can be retried as long as their records are kept.',
    fields: [
      { name: 'force', label: 'Also running jobs, where the settings protect them', type: 'checkbox' },
      {
        name: 'dependents',
        label: 'Jobs that wait for them',
        type: 'select',
        value: 'leave',
        options: [
          ['leave', 'go by what they were told'],
          ['cancel', 'are cancelled as well'],
        ],
      },
    ],
    options: ({ force, dependents }) => ({
      ...(force ? { force } : {}),
      ...(dependents === 'cancel' ? { dependents } : {}),
    }),
  },
  {
    id: 'discard',
    label: 'Discard',
    did: 'discarded',
    states: [...WAITING, 'done', 'error', 'cancelled', 'skipped'],
    path: '/jobs/discard',
    danger: true,
    what: 'They go for good, with arguments, results and errors. This cannot be undone.',
  },
];

export const actionOf = (id) => ACTIONS.find((action) => action.id === id);
const ANSWERS_NO = new Set(['NOTFOUND', 'CONFLICT']);

/** Does it to at most 1000 jobs → how many it was done to. */
export async function toIds(action, ids, values = {}) {
  const body = action.change
    ? { jobs: ids.map((id) => ({ id, ...action.change(values) })) }
    : { ids, ...(action.options?.(values) || {}) };
  const answer = await api.post(action.change ? '/jobs/change' : action.path || action.idsPath, body);
  return answer.jobs.filter((state) => !ANSWERS_NO.has(state)).length;
}
