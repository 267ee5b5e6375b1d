// What is wrong now, the worst first: each alert with what may help at once, and a link to where it is looked into.
import { api, path, toJob, withQuery } from './api.js';
import { count } from './format.js';
import { act } from './forms.js';
import { Ago, Badge, Button, takeJobs, toLimit, toQueue } from './parts.js';
import { html, useData, Way } from './view.js';

const SHOWN = 4;
const ALIKE = 3; // of a kind: more are folded into one line
const LISTED = 50;

/** The page where it is looked into. */
function placeOf({ kind, queue, worker, constraint, job, group }) {
  if (kind === 'hung' || worker) return worker ? path`/worker/${worker}` : '/workers';
  if (constraint) return toLimit(constraint);
  if (job) return path`/job/${job}`;
  if (group) return withQuery('/jobs', { group, ...(kind === 'failing' ? { queue } : { status: 'error' }) });
  return queue ? toQueue(queue) : null;
}

async function retryAll({ group, queue }) {
  const { actionOf, mass } = await import('./query.js');
  return mass(actionOf('retry'), {
    where: { status: ['error', 'retrying'], ...(queue && { queue }), ...(group && { group }) },
  });
}

// By kind: what helps once the cause is known, in a word, and how that is done.
const HELP = {
  paused: ['Resume', ({ queue }) => act(() => api.post(toQueue(queue), { paused: false }), `${queue} is resumed.`)],
  blocked: ['Retry', ({ job }) => act(() => toJob('/jobs/retry', { ids: [job] }), 'It is in the queue again.')],
  hung: ['Take jobs…', ({ queue, worker }) => takeJobs({ queue, worker }, `${worker}, of ${queue}`)],
  failing: ['Retry all…', retryAll],
  new_failures: ['Retry all…', retryAll],
};

function Help({ alert, reload }) {
  const [word, help] = HELP[alert.kind] || [];
  const to = placeOf(alert);
  return html`<span class="actions">
    ${
      help
        ? html`<${Button} needs="operator" class="small" aria-label=${`${word.replace('…', '')}: ${alert.text}`}
            onClick=${async () => (await help(alert)) !== undefined && reload?.()}>${word}<//>`
        : null
    }
    ${to && !location.pathname.endsWith(to) ? html`<${Way} to=${to} aria-label=${`Show: ${alert.text}`}>Show<//>` : null}</span>`;
}

const Since = ({ alert }) =>
  alert.since_ms ? html`<span class="muted nowrap"> began <${Ago} ms=${alert.since_ms} /></span>` : null;

/** One, with more of its kind folded below it. */
const Alert = ({ alert, more = [], reload }) => html`<div class=${`alert is-${alert.level}`}>
  <details><summary><${Badge} word=${alert.level} /> <b>${alert.text}</b>
      ${more.length ? html`<span> and ${count(more.length)} more like it</span>` : null}<${Since} alert=${alert} /></summary>
    <div>${alert.advice}</div>
    ${more
      .slice(0, LISTED)
      .map(
        (alert) =>
          html`<div key=${alert.text} class="alert-more">${alert.text}<${Since} alert=${alert} /> <${Help} alert=${alert} reload=${reload} /></div>`,
      )}
    ${more.length > LISTED ? html`<div>All of them: <code>jqmaster doctor</code></div>` : null}</details>
  <${Help} alert=${alert} reload=${reload} /></div>`;

/** Many of a kind are one line; a few lines are seen at once. */
export function Alerts({ alerts, reload }) {
  const kinds = Object.values(Object.groupBy(alerts, ({ level, kind }) => `${level} ${kind}`));
  const lines = kinds
    .flatMap((alike) => (alike.length > ALIKE ? [alike] : alike.map((alert) => [alert])))
    .map(([alert, ...more]) => html`<${Alert} key=${alert.text} alert=${alert} more=${more} reload=${reload} />`);
  const rest = lines.slice(SHOWN);
  if (!alerts.length) return null;
  return html`<section class="panel" aria-label="Alerts">
    ${lines.slice(0, SHOWN)}
    ${rest.length ? html`<details class="alerts-more"><summary>${count(rest.length)} more</summary>${rest}</details>` : null}
  </section>`;
}

const ABOUT = ['kind', 'queue', 'worker', 'constraint', 'job', 'group'];

/** {alerts: what is wrong now, the worst first, requests}. What several partitions tell of the same thing is told once. */
const alertsOf = (queue) => async (signal) => {
  const alerts = [];
  let [cursor, requests] = ['', 0];
  do {
    const page = await api.get('/alerts', { queue, cursor }, { signal });
    alerts.push(...page.alerts);
    cursor = page.cursor;
    requests += 1;
  } while (cursor);
  const known = new Map();
  for (const alert of alerts.sort((a, b) => b.weight - a.weight)) {
    const about = JSON.stringify(ABOUT.map((name) => alert[name]));
    if (!known.has(about)) known.set(about, alert);
  }
  return { alerts: [...known.values()], requests };
};

/** As useData's answer, of one queue or of all; its data is undefined before that is known. */
export const useAlerts = (queue) => useData(alertsOf(queue), { ms: 5000, deps: [queue] });

/** What is wrong with one thing: <AlertsOf field="queue" name=${name} />. */
export function AlertsOf({ field, name }) {
  const { data, reload } = useAlerts(field === 'queue' ? name : undefined);
  return html`<${Alerts} alerts=${(data?.alerts || []).filter((alert) => alert[field] === name)} reload=${reload} />`;
}
