// What stands around every page: which system this is, in words and in a colour, and the time range of all pages.
import { show } from './components/dialog.js';
import { button, fill, h } from './dom.js';
import { moment } from './format.js';
import { onQuery, query } from './router.js';
import { RANGES, rangeOf, setRange } from './view.js';

const place = document.getElementById('system');
let system = null;
let title = '';

/** What GET /session says of its master. */
export function showSystem(master) {
  system = master;
  const { environment, color, namespace, redis, redis_version, version } = master;
  if (environment) document.documentElement.dataset.environment = color;
  const facts = [
    ['Namespace', namespace],
    ['Redis', redis_version ? `${redis}, version ${redis_version}` : `${redis}, version unknown: it does not answer`],
    ['JQ', `version ${version}`],
  ];
  const details = () =>
    show(
      environment || 'This system',
      h(
        'dl',
        { class: 'facts' },
        facts.map(([name, text]) => [h('dt', {}, name), h('dd', {}, text)]),
      ),
    );
  const shown = [namespace, `Redis ${redis_version ?? ''} ${redis}`, `JQ ${version}`];
  fill(
    place,
    environment && h('b', { class: 'environment' }, environment),
    button(
      shown.map((text, index) => h('span', { class: index ? 'fact hide-middle' : 'fact' }, text)),
      details,
      { class: 'quiet facts-of', 'aria-label': `${shown.join(', ')}: more of this system`, title: shown.join('\n') },
    ),
  );
  place.hidden = false;
  draw();
}

/** The document's title: the page, and of which system. */
export function setTitle(page) {
  title = page;
  draw();
}

function draw() {
  const where = system && (system.environment || (system.namespace === '{jq}' ? '' : system.namespace));
  document.title = [title, where ? `JQ ${where}` : 'JQ'].filter(Boolean).join(' · ');
}

/** The chooser of the time range of all pages; what a chart was brushed to is one of its choices while it holds. */
export function startRange() {
  const choice = document.getElementById('range');
  const show = () => {
    const { name, from_ms, to_ms, isLive } = rangeOf(query());
    const own = isLive ? [] : [['', `${moment(from_ms)} – ${moment(to_ms)}`]];
    fill(
      choice,
      [...own, ...RANGES.map(([key, , title]) => [key, `Last ${title}`])].map(([key, text]) =>
        h('option', { value: key, selected: key === name }, text),
      ),
    );
  };
  choice.addEventListener('change', () => choice.value && setRange({ range: choice.value }));
  onQuery(show);
  show();
}
