// Dialogs: to confirm what cannot be undone, and to ask for values. What destroys is never first in focus, and no Enter
// in a field does it: it wants its button.
import { button, fill, h } from '../dom.js';
import { field, read, saidAt } from './field.js';

function open(title, content, buttons, { wide = false } = {}) {
  const dialog = h('dialog', { class: wide ? 'wide' : '', 'aria-label': title });
  dialog.append(h('h2', {}, title), ...content, h('div', { class: 'buttons' }, buttons));
  // A click beside it closes it, as Escape does.
  dialog.addEventListener('mousedown', (event) => event.target === dialog && dialog.close());
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Asks before something is done → whether to do it. `body`: texts or elements. `typed`: a name that must be typed first. */
export function confirm({ title, body = [], action = 'OK', danger = true, typed }) {
  return new Promise((resolve) => {
    const text = [body].flat().map((part) => (part instanceof Node ? part : h('p', {}, part)));
    const input = typed === undefined ? null : h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false' });
    let answer = false;
    const go = button(
      action,
      () => {
        answer = true;
        dialog.close();
      },
      { class: danger ? 'danger' : 'primary', disabled: Boolean(input) },
    );
    if (input) {
      text.push(h('label', { class: 'field' }, h('span', {}, 'To confirm, type ', h('code', {}, typed)), input));
      input.addEventListener('input', () => {
        go.disabled = input.value !== typed;
      });
      input.addEventListener('keydown', (event) => event.key === 'Enter' && !danger && !go.disabled && go.click());
    }
    const cancel = button('Cancel', () => dialog.close());
    const dialog = open(title, text, [cancel, go]);
    dialog.addEventListener('close', () => resolve(answer));
    (input || (danger ? cancel : go)).focus();
  });
}

/**
 * Asks for values. `fields`: as of field.js. `submit(values)` is async; what it throws is shown at the field it names,
 * and the dialog stays. → submit's answer, or undefined when it was given up.
 */
export function form({ title, body = [], fields, action = 'Save', danger = false, submit, wide = false }) {
  return new Promise((resolve) => {
    const made = fields.map(field);
    const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
    let answer;
    const cancel = button('Cancel', () => dialog.close());
    const send = danger
      ? button(action, () => run(), { class: 'danger' })
      : h('button', { type: 'submit', class: 'primary' }, action);
    const element = h(
      'form',
      {
        method: 'dialog',
        novalidate: true,
        on: {
          submit: (event) => {
            event.preventDefault();
            if (!danger) run();
          },
        },
      },
      [body].flat().map((part) => (part instanceof Node ? part : h('p', {}, part))),
      made.map((one) => one.element),
      problem,
      h('div', { class: 'buttons' }, cancel, send),
    );
    async function run() {
      problem.hidden = true;
      for (const one of made) one.setProblem('');
      send.disabled = true;
      try {
        answer = (await submit(read(made))) ?? true;
        dialog.close();
      } catch (error) {
        if (!error.code && !error.field) console.debug(error);
        const at = made.find(
          (one) =>
            error.field &&
            (error.field === one.name ||
              error.field.startsWith(`${one.name}.`) ||
              error.field.startsWith(`${one.name}[`)),
        );
        if (at) at.setProblem(saidAt(error, at.name));
        else {
          fill(problem, error.message);
          problem.hidden = false;
        }
        (at || made[0])?.focus();
      } finally {
        send.disabled = false;
      }
    }
    const dialog = open(title, [element], [], { wide });
    dialog.addEventListener('close', () => resolve(answer));
    (made[0] || (danger ? cancel : send)).focus();
  });
}

/** Shows something until it is closed. */
export function show(title, ...content) {
  const dialog = open(title, content, [button('Close', () => dialog.close(), { class: 'primary' })], { wide: true });
  return dialog;
}
