// What is wrong, in lines that open: at most three are seen at once, the rest is one click away. A line can be snoozed,
// in this browser.
import { api, path } from '../api.js';
import { count, now } from '../format.js';
import { withQuery } from '../router.js';
import { html, Link, useData, useState } from '../view.js';
import { Badge } from './badge.js';
import { Ago } from './time.js';

const SHOWN = 3;
const LISTED = 50;
const HOUR = 3600000;

/** The page where it is looked into, and mended. */
function placeOf({ kind, queue, worker, constraint, job, group }) {
  if (kind === 'hung' || worker) return worker ? path`/worker/${worker}` : '/workers';
  if (constraint) return path`/constraint/${constraint}`;
  if (job) return path`/job/${job}`;
  if (group) return withQuery('/jobs', { group, ...(kind === 'failing' ? { queue } : { status: 'error' }) });
  if (queue) return path`/queue/${queue}`;
  return null;
}

function About({ alert }) {
  const to = placeOf(alert);
  return to ? html`<${Link} to=${to} aria-label=${`Show: ${alert.text}`}>Show<//>` : null;
}

// -- snoozed: until when, by what it is and what it is about ------------------------------------------

const KEY = 'jq.snoozed';
const keyOf = ({ kind, ...about }) =>
  ['queue', 'worker', 'constraint', 'job', 'group'].reduce((key, field) => `${key} ${about[field] ?? ''}`, kind);

function snoozedNow() {
  try {
    const all = JSON.parse(localStorage.getItem(KEY) || '{}');
    return Object.fromEntries(Object.entries(all).filter(([, until]) => until > now()));
  } catch {
    return {};
  }
}

function keep(all) {
  try {
    localStorage.setItem(KEY, JSON.stringify(all));
  } catch (problem) {
    console.debug(problem); // no room, or not allowed: it holds until the page is left
  }
}

function tomorrow() {
  const next = new Date(now());
  next.setHours(24, 0, 0, 0);
  return next.getTime();
}

// -- lines --------------------------------------------------------------------------------------------

/** Many of a kind are one line, the worst first. */
function grouped(found) {
  const groups = new Map();
  for (const alert of found) {
    const kind = `${alert.level} ${alert.kind}`;
    groups.set(kind, [...(groups.get(kind) || []), alert]);
  }
  return [...groups.entries()];
}

const Since = ({ alert }) => (alert.since_ms ? html`<span>since <${Ago} ms=${alert.since_ms} /></span>` : null);

function Line({ group, onSnooze }) {
  const [first, ...more] = group;
  // The link stands beside the summary, which is a button itself.
  return html`<div class=${`alert is-${first.level}`}><details>
    <summary><${Badge} word=${first.level} /> <b>${first.text}</b>
      ${more.length ? html`<span> and ${count(more.length)} more like it</span>` : null}
      <span class="muted"> <${Since} alert=${first} /></span></summary>
    <div>${first.advice}</div>
    ${more
      .slice(0, LISTED)
      .map((one) => html`<div key=${keyOf(one)}>${one.text} <${About} alert=${one} /> <${Since} alert=${one} /></div>`)}
    ${more.length > LISTED ? html`<div>All of them: <code>jqmaster doctor --all</code></div>` : null}
    <div class="alert-foot">
      <button type="button" class="quiet" onClick=${() => onSnooze(group, now() + HOUR)}>Snooze for 1 h</button>
      <button type="button" class="quiet" onClick=${() => onSnooze(group, tomorrow())}>Snooze until tomorrow</button></div>
  </details><${About} alert=${first} /></div>`;
}

/** What is wrong with one thing: <AlertsOf field="queue" name=${name} />. */
export function AlertsOf({ field, name }) {
  const { data } = useData((signal) => api.get('/overview', {}, { signal }), { ms: 5000 });
  const found = (data?.alerts || []).filter((alert) => alert[field] === name);
  if (!found.length) return null;
  return html`<section class="panel alerts" aria-label="Alerts">${found.map(
    (alert) => html`<div key=${keyOf(alert)} class=${`alert is-${alert.level}`}>
      <${Badge} word=${alert.level} /> <b>${alert.text}</b>${' '}<span class="muted"><${Since} alert=${alert} /></span>
      <div>${alert.advice}</div></div>`,
  )}</section>`;
}

/** <Alerts found=${[{kind, level, text, advice, since_ms, …}, …]} />, the worst first. */
export function Alerts({ found }) {
  const [snoozed, setSnoozed] = useState(snoozedNow);
  if (!found?.length) return null;
  const isSnoozed = (alert) => snoozed[keyOf(alert)] > now();
  const lines = grouped(found.filter((alert) => !isSnoozed(alert)));
  const hidden = found.filter(isSnoozed);
  const set = (all) => {
    keep(all);
    setSnoozed(all);
  };
  const snooze = (group, until) =>
    set({ ...snoozedNow(), ...Object.fromEntries(group.map((alert) => [keyOf(alert), until])) });
  const line = ([kind, group]) => html`<${Line} key=${kind} group=${group} onSnooze=${snooze} />`;
  const rest = lines.slice(SHOWN);
  return html`<section class="panel alerts" aria-label="Alerts">
    ${lines.slice(0, SHOWN).map(line)}
    ${
      rest.length
        ? html`<details class="alerts-more"><summary>${count(rest.length)} more</summary>${rest.map(line)}</details>`
        : null
    }
    ${
      hidden.length
        ? html`<p class="muted alert-foot"><span>${count(hidden.length)} snoozed in this browser</span>
            <button type="button" class="quiet" onClick=${() => set({})}>Show</button></p>`
        : null
    }
  </section>`;
}
