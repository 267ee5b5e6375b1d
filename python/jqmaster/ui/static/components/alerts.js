// What is wrong, in lines that open: at most three are seen at once, the rest is one click away. A line can be snoozed,
// in this browser.
import { path } from '../api.js';
import { clock, count, now } from '../format.js';
import { html, Link, useState } from '../view.js';
import { Badge } from './badge.js';
import { Ago } from './time.js';

const SHOWN = 3;
const LISTED = 50;
const HOUR = 3600000;
const PAGES = {
  constraints: 'constraint',
  keys: 'constraint',
  paths: 'constraint',
  blocked: 'job',
  sweeping: 'queue',
  unserved: 'queue',
  unknown: 'queue',
  late: 'queue',
  paused: 'queue',
  full: 'queue',
  lapsed: 'queue',
  overran: 'queue',
};
const LISTS = { workers: '/workers', schedules: '/schedules' };

function placeOf({ check, about }) {
  if (!about) return null;
  if (check === 'failures') return `/jobs?${new URLSearchParams({ status: 'error', group: about })}`;
  return LISTS[check] || (PAGES[check] ? `/${PAGES[check]}${path`/${about}`}` : null);
}

function About({ finding }) {
  const to = placeOf(finding);
  return to ? html`<${Link} to=${to} aria-label=${`Show ${finding.about}`}>Show<//>` : null;
}

/** What stands between backticks is a command. */
const commands = (text) => text.split('`').map((part, i) => (i % 2 ? html`<code>${part}</code>` : part));

// -- snoozed: until when, by what it is and what it is about ------------------------------------------

const KEY = 'jq.snoozed';
const keyOf = ({ check, about }) => `${check} ${about ?? ''}`;

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
  for (const finding of found) {
    const kind = `${finding.level} ${finding.check}`;
    groups.set(kind, [...(groups.get(kind) || []), finding]);
  }
  return [...groups.entries()];
}

/** Since when it is so; where that is not known, when it was seen first. */
const Since = ({ finding }) =>
  finding.since_ms
    ? html`<span>since <${Ago} ms=${finding.since_ms} /></span>`
    : html`<span>first seen <${Ago} ms=${finding.seen_ms} /></span>`;

function Line({ group, onSnooze }) {
  const [first, ...more] = group;
  return html`<details class=${`alert is-${first.level}`}>
    <summary><${Badge} word=${first.level} /> <b>${first.title}</b>
      ${more.length ? html`<span> and ${count(more.length)} more like it</span>` : null}
      <span class="muted"> · <${Since} finding=${first} /></span></summary>
    <div>${first.means} <${About} finding=${first} /></div>
    ${first.do ? html`<div>${commands(first.do)}</div>` : null}
    ${more
      .slice(0, LISTED)
      .map(
        (one) =>
          html`<div key=${one.about}>${one.title} <${About} finding=${one} /> · <${Since} finding=${one} /></div>`,
      )}
    ${more.length > LISTED ? html`<div>All of them: <code>jqmaster doctor --all</code></div>` : null}
    <div class="alert-foot"><span>As of ${clock(first.as_of_ms, true)}</span>
      <button type="button" class="quiet" onClick=${() => onSnooze(group, now() + HOUR)}>Snooze for 1 h</button>
      <button type="button" class="quiet" onClick=${() => onSnooze(group, tomorrow())}>Snooze until tomorrow</button></div>
  </details>`;
}

/** <Alerts found=${[{check, level, title, means, do, about, since_ms, as_of_ms}, …]} />; null: not known yet. */
export function Alerts({ found }) {
  const [snoozed, setSnoozed] = useState(snoozedNow);
  if (!found?.length) return null;
  const isSnoozed = (finding) => snoozed[keyOf(finding)] > now();
  const lines = grouped(found.filter((finding) => !isSnoozed(finding)));
  const hidden = found.filter(isSnoozed);
  const set = (all) => {
    keep(all);
    setSnoozed(all);
  };
  const snooze = (group, until) =>
    set({ ...snoozedNow(), ...Object.fromEntries(group.map((finding) => [keyOf(finding), until])) });
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
