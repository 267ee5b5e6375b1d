// Short messages about what was just done. Errors stay until they are closed; what can be undone says so for a while.
import { button, h } from '../dom.js';

const SHOWN_MS = 6000;
const UNDO_MS = 10000;
const MOST = 4;

const isTyping = (element) => element.closest?.('input:not([type=checkbox]), textarea, select, [contenteditable]');

/** What the last message with a way back does, for Ctrl-Z. */
function lastUndo() {
  return [...document.querySelectorAll('#toasts .undo')].at(-1);
}

document.addEventListener('keydown', (event) => {
  const isUndo = event.key === 'z' && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
  if (!isUndo || isTyping(event.target) || document.querySelector('dialog[open]')) return;
  const undo = lastUndo();
  if (!undo) return;
  event.preventDefault();
  undo.click();
});

/** Takes the message away. The focus that was in it goes on in the page, not to nowhere. */
function leave(item) {
  if (item.contains(document.activeElement)) document.getElementById('main')?.focus();
  item.remove();
}

/** Takes the message away after `ms`, but not while the mouse or the focus is in it. */
function leaveAfter(item, ms) {
  const go = () => (item.matches(':hover, :focus-within') ? setTimeout(go, 1000) : leave(item));
  setTimeout(go, ms);
}

/** Says something. `undo`: an action; a button beside the text does it, for ten seconds. */
export function toast(text, kind = 'ok', { undo } = {}) {
  const place = document.getElementById('toasts');
  const back =
    undo &&
    button(
      'Undo',
      async () => {
        leave(item);
        await act(undo, 'Undone.');
      },
      { class: 'small undo', title: 'Ctrl Z', 'aria-keyshortcuts': 'Control+Z Meta+Z' },
    );
  const item = h(
    'div',
    { class: `toast is-${kind}`, role: kind === 'error' ? 'alert' : undefined },
    h('span', {}, text),
    back,
    button('Close', () => leave(item), { class: 'quiet' }),
  );
  place.append(item);
  while (place.childElementCount > MOST) place.firstElementChild.remove();
  if (kind !== 'error') leaveAfter(item, undo ? UNDO_MS : SHOWN_MS);
}

export const failed = (problem) => {
  if (problem.name === 'AbortError') return;
  if (!problem.code) console.error(problem);
  toast(problem.message || String(problem), 'error');
};

/**
 * Does something and says so: act(() => api.post(…), 'Queue paused.', {undo: () => api.post(…)}).
 * `done`: a text, or made of the answer; `undo`: what takes it back, told the answer.
 * → its answer, true where there is none; undefined when it failed.
 */
export async function act(action, done, { undo } = {}) {
  try {
    const answer = await action();
    const text = typeof done === 'function' ? done(answer) : done;
    if (text) toast(text, 'ok', { undo: undo && (() => undo(answer)) });
    return answer === null || answer === undefined ? true : answer;
  } catch (problem) {
    failed(problem);
    return undefined;
  }
}
