// What a worker said of a failure: texts of several lines, such as tracebacks, as lines; the rest as a tree.
import { tree } from '../components/tree.js';
import { button, h } from '../dom.js';
import { count, straight } from '../format.js';

const SHOWN = 12; // lines; of a traceback the last ones tell the most

const isLines = (value) => typeof value === 'string' && value.trim().includes('\n');

function lines(value, name) {
  const all = straight(value.replace(/\n$/, '')).split('\n');
  const shown = h('pre', { class: 'j-lines trace', tabindex: 0, 'aria-label': name }, all.slice(-SHOWN).join('\n'));
  const hidden = all.length - SHOWN;
  const more = button(
    `Show ${count(hidden)} lines before`,
    () => {
      shown.textContent = all.join('\n');
      more.remove();
    },
    { class: 'inline' },
  );
  return h('div', { class: 'trace-box' }, h('h3', {}, name), hidden > 0 ? more : null, shown);
}

/** Elements for the error of a job; none where there is nothing. */
export function errorOf(error) {
  if (error === null || error === undefined) return [];
  if (isLines(error)) return [lines(error, 'Error')];
  if (typeof error !== 'object' || Array.isArray(error)) return [tree(error, 'Error')];
  const rest = Object.entries(error).filter(([, value]) => !isLines(value));
  const long = Object.entries(error).filter(([, value]) => isLines(value));
  return [
    rest.length || !long.length ? tree(Object.fromEntries(rest), 'Error') : null,
    ...long.map(([name, value]) => lines(value, straight(name))),
  ];
}
