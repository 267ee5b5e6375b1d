// What the pages of workers share: what they run and whether that is unusual, and what can be done with them.
import { api, path } from './api.js';
import { Badge } from './components/badge.js';
import { Meter } from './components/bar.js';
import { confirm } from './components/dialog.js';
import { Button } from './components/parts.js';
import { act } from './components/toast.js';
import { count, duration, jobs as inJobs, now } from './format.js';
import { html, Link } from './view.js';

// Of so many running jobs it is looked what they are and who runs them.
export const LOOKED_AT = 200;
// Of so many names it is asked how long they usually take, again after so long.
const MOST_NAMES = 20;
const USUAL_FOR_MS = 60000;
// Stuck is what takes so many times as long as usual, and at least so long.
const TIMES = 3;
const LEAST_MS = 10000;
// Fewer runs than that say nothing of what is usual.
const LEAST_RUNS = 20;
const DAY_MS = 86400000;

const TIPS = {
  ready: 'Has room',
  full: 'Runs as many as it takes',
  busy: 'Said that it is busy',
  unreachable: 'Deliveries do not get through',
  pulling: 'Fetches jobs by itself',
  quiet: 'Finishes what it has, takes no more',
  gone: 'Gives no sign of life any more',
};

export const isRegistered = (worker) => /^w[0-9a-f]{14}(?:[0-9a-f]{2})?$/.test(worker.id) && worker.state !== 'gone';

export const State = ({ of }) =>
  html`<${Badge} word=${of.state} title=${TIPS[of.state]} />${
    of.request === 'stop' ? html` <${Badge} word="stop" title="It was asked to stop" />` : null
  }`;

/** Its slots: of those that never said how many they have only how many jobs; of the dead nothing. */
export const Slots = ({ of }) =>
  of.state === 'gone'
    ? html`<span class="zero">–</span>`
    : of.url || of.host
      ? html`<${Meter} value=${of.held} limit=${of.max_jobs} />`
      : count(of.held);

export const Queues = ({ of }) =>
  [of.queues]
    .flat()
    .map(
      (queue, i) =>
        html`${i ? ', ' : ''}${
          String(queue).includes('*')
            ? html`<code>${queue}</code>`
            : html`<${Link} to=${path`/queue/${queue}`}>${queue}<//>`
        }`,
    );

/** Some running jobs: {found: id → job, isAll}. */
export async function runningJobs(signal) {
  const page = await api.get('/jobs', { status: 'running', brief: 1, count: LOOKED_AT }, { signal });
  return { found: new Map(page.jobs.map((job) => [job.id, job])), isAll: !page.cursor };
}

const usual = new Map();

/** How long jobs of a name took in the last two days: {ms, what} of the 95th of a hundred; null when too few ran. */
async function usualOf(name, signal) {
  const known = usual.get(name);
  if (known && now() - known.asked < USUAL_FOR_MS) return known.run;
  const { stats } = await api.get('/stats', { by: 'day', name, from_ms: now() - 2 * DAY_MS }, { signal });
  const { run } = stats.filter((one) => one.run?.count >= LEAST_RUNS).at(-1) ?? {};
  const answer = run ? { ms: run.p95 ?? run.p99, what: run.p95 === undefined ? 'p99' : 'p95' } : null;
  usual.set(name, { asked: now(), run: answer });
  return answer;
}

/** Asks what is usual for the names of those of the jobs that run for long. */
export async function learnUsual(found, signal) {
  const long = [...found.values()].filter((job) => now() - job.started_ms >= LEAST_MS);
  const names = [...new Set(long.map((job) => job.name))].slice(0, MOST_NAMES);
  await Promise.all(names.map((name) => usualOf(name, signal)));
}

/** "12 × its usual p95", for a job that runs much longer than others of its name; else `none`. */
export function Stuck({ job, none = null }) {
  const run = job && usual.get(job.name)?.run;
  const age = job && now() - job.started_ms;
  if (!run?.ms || age < LEAST_MS || age < TIMES * run.ms) return none;
  const title = `${job.name} usually takes up to ${duration(run.ms)} (${run.what})`;
  return html`<${Badge} word=${`${count(Math.floor(age / run.ms))} × its usual ${run.what}`} title=${title} kind="warning" />`;
}

/** Takes all its jobs from a worker, in steps. `ids`: of one that is not listed, those that it is known to run. */
export async function takeJobs(worker, ids) {
  const isSure = await confirm({
    title: `Take its jobs from ${worker.name}?`,
    action: `Take ${inJobs(worker.held)}`,
    body: 'They wait in their queues again and no retry is spent. What the worker says of them later counts no more.',
  });
  if (!isSure) return undefined;
  const take = async () => {
    if (ids) {
      const { jobs } = await api.post('/jobs/kick', { ids });
      return jobs.filter((answer) => answer === 'queued').length;
    }
    let [sum, cursor] = [0, ''];
    do {
      const answer = await api.post('/jobs/kick', { where: { worker: worker.id }, cursor });
      sum += answer.changed;
      cursor = answer.cursor;
    } while (cursor);
    return sum;
  };
  return act(take, (sum) => `${inJobs(sum)} of ${worker.name} ${sum === 1 ? 'waits' : 'wait'} again.`);
}

async function ask(worker, what, text, undo) {
  if (
    what === 'stop' &&
    !(await confirm({
      title: `Stop ${worker.name}?`,
      action: 'Stop',
      body: 'It finishes what it runs and ends. Something else has to start it again.',
    }))
  )
    return undefined;
  const say = (request) => api.post(`${path`/worker/${worker.id}`}/${request}`);
  return act(() => say(what), text, { undo: undo && (() => say(undo)) });
}

/** What can be done with a worker that is listed; `done` is called afterwards. */
export function Actions({ of, done, size = 'small' }) {
  const one = (label, action, { kind = '', ...rest } = {}) =>
    html`<${Button} needs="operator" class=${`${size} ${kind}`} onClick=${async () => (await action()) !== undefined && done()}
      aria-label=${`${label} ${label === 'Take jobs' ? 'from ' : ''}${of.name}`} ...${rest}>${label}<//>`;
  const take = { kind: 'danger', title: 'Have all its jobs wait again' };
  const quiet = { title: 'Finish what it has, take no more' };
  return [
    of.held ? one('Take jobs', () => takeJobs(of), take) : null,
    !isRegistered(of)
      ? null
      : of.request
        ? one('Resume', () => ask(of, 'resume', `${of.name} takes jobs again.`))
        : one('Quiet', () => ask(of, 'quiet', `${of.name} takes no more jobs.`, 'resume'), quiet),
    isRegistered(of) && of.request !== 'stop'
      ? one('Stop', () => ask(of, 'stop', `${of.name} was asked to stop.`, 'resume'), { kind: 'danger' })
      : null,
  ];
}
