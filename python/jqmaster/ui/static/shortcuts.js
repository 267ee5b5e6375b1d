// The keyboard: / filters, j and k walk rows, g and a letter go to a page, ? says so.

import { show } from './components/dialog.js';
import { h } from './dom.js';
import { inBar } from './pages/index.js';
import { navigate } from './router.js';

const isTyping = (element) => element.closest('input:not([type=checkbox]), textarea, select, [contenteditable]');

function walk(step) {
  const lines = [...document.querySelectorAll('#main tbody tr[tabindex]')].filter((line) => line.offsetParent);
  if (!lines.length) return;
  const at = lines.indexOf(document.activeElement?.closest('tr'));
  const next = lines[at < 0 ? (step > 0 ? 0 : lines.length - 1) : Math.max(0, Math.min(lines.length - 1, at + step))];
  next.focus();
  next.scrollIntoView({ block: 'nearest' });
}

function help() {
  if (document.querySelector('dialog')) return;
  const keys = [
    ['/', 'to the filter'],
    ['j, k', 'next and previous row'],
    ['Enter', 'open the row'],
    ['x', 'choose the row'],
    ['X', 'choose from the last one to here'],
    ['Space', 'look inside a job'],
    ['← →', 'in a chart: its values'],
    ['Esc', 'close a dialog, leave a field'],
    ...inBar().map((page) => [`g ${page.key}`, page.title]),
    ['?', 'this help'],
  ];
  show(
    'Keyboard',
    h(
      'dl',
      { class: 'keys' },
      keys.map(([key, text]) => h('div', {}, h('dt', {}, h('kbd', {}, key)), h('dd', {}, text))),
    ),
  );
}

export function startKeys() {
  let isGoing = 0;
  document.getElementById('help').addEventListener('click', help);
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { key, target } = event;
    if (isTyping(target)) {
      if (key === 'Escape' && !target.closest('dialog')) target.blur();
      return;
    }
    if (document.querySelector('dialog[open]')) return;
    const page = Date.now() - isGoing < 1500 && inBar().find((one) => one.key === key);
    isGoing = key === 'g' ? Date.now() : 0;
    if (page) navigate(page.path);
    else if (key === '/') {
      document.querySelector('#main [data-filter]')?.focus();
    } else if (key === 'j') walk(1);
    else if (key === 'k') walk(-1);
    else if (key === '?') help();
    else return;
    event.preventDefault();
  });
}
