// What the doctor found, as lines that open.
import { path } from '../api.js';
import { h } from '../dom.js';
import { count } from '../format.js';
import { link, withQuery } from '../router.js';
import { badge } from './badge.js';

function aboutLink(finding) {
  if (!finding.about) return null;
  const pages = {
    constraints: 'constraint',
    blocked: 'job',
    sweeping: 'queue',
    unserved: 'queue',
    late: 'queue',
    paused: 'queue',
    full: 'queue',
    lapsed: 'queue',
  };
  if (finding.check === 'failures')
    return link(withQuery('/jobs', { status: 'error', group: finding.about }), 'Show jobs');
  if (finding.check === 'workers') return link('/workers', 'Workers');
  if (finding.check === 'schedules') return link('/schedules', 'Schedules');
  const page = pages[finding.check];
  return page ? link(`/${page}${path`/${finding.about}`}`, 'Show') : null;
}

export function alerts(found) {
  if (found === null) return [h('p', { class: 'muted' }, 'Looking …')];
  if (!found.length) return [h('p', {}, badge('ok'), ' Nothing to worry about.')];
  // Many of a kind are one line, else they would push everything else off the screen.
  const groups = new Map();
  for (const finding of found) {
    const kind = `${finding.level} ${finding.check}`;
    groups.set(kind, [...(groups.get(kind) || []), finding]);
  }
  return [...groups.values()].flatMap((group) => (group.length > 3 ? [several(group)] : group.map(single)));
}

function several(group) {
  const [first] = group;
  return h(
    'details',
    { class: `alert is-${first.level}` },
    h(
      'summary',
      {},
      badge(first.level),
      ' ',
      h('b', {}, first.title),
      ' ',
      aboutLink(first),
      h('span', {}, ` and ${count(group.length - 1)} more like it`),
    ),
    first.means ? h('div', {}, first.means) : null,
    group.slice(1, 51).map((finding) => h('div', {}, finding.title, ' ', aboutLink(finding))),
    group.length > 51 ? h('div', {}, 'All of them: ', h('code', {}, 'jqmaster doctor')) : null,
  );
}

function single(finding) {
  return h(
    'details',
    { class: `alert is-${finding.level}` },
    h('summary', {}, badge(finding.level), ' ', h('b', {}, finding.title), ' ', aboutLink(finding)),
    finding.means ? h('div', {}, finding.means) : null,
    finding.do ? h('div', {}, commands(finding.do)) : null,
  );
}

/** What stands between backticks is a command. */
function commands(text) {
  return text.split('`').map((part, i) => (i % 2 ? h('code', {}, part) : part));
}
