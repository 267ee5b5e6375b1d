// Forms, dialogs, and short messages about what was done. What destroys is never first in focus, and no Enter in a field
// does it: it wants its button.
import { exactParse, stringify } from './api.js';
import { html, render, useRef, useState } from './view.js';

export const fault = (field, message) => Object.assign(new Error(message), { field });

// -- fields: what is typed becomes a value of the API, or an error at the field -----------------------

const READERS = {
  number: (text, name) => {
    const value = Number(text);
    if (Number.isNaN(value)) throw fault(name, `“${text}” is not a number`);
    return value;
  },
  json: (text, name) => {
    try {
      return exactParse(text);
    } catch (problem) {
      throw fault(name, `not JSON: ${problem.message}`);
    }
  },
  // One in a line, or between commas.
  list: (text) =>
    text
      .split(/[\n,]/)
      .map((part) => part.trim())
      .filter(Boolean),
  datetime: (text, name) => {
    const ms = new Date(text).getTime();
    if (Number.isNaN(ms)) throw fault(name, 'not a date and time');
    return ms / 1000;
  },
};

function textOf({ type, value, text }) {
  if (text !== undefined || value === undefined) return text ?? '';
  if (type === 'json') return stringify(value, 2);
  if (value === null) return '';
  return Array.isArray(value) ? value.join(', ') : String(value);
}

/** The value in a field; undefined when it is empty. Throws an error with `field`. */
function read({ name, label, type, required }, input) {
  if (type === 'checkbox') return input.checked;
  if (input.value.trim() === '') {
    if (required) throw fault(name, `${label} is needed`);
    return undefined;
  }
  return READERS[type] ? READERS[type](input.value, name) : input.value;
}

/** Texts to complete an input with: {list: its id, ask(text), view}. suggest: async (text) → texts; none: nothing. */
export function useSuggestions(id, suggest) {
  const [suggestions, setSuggestions] = useState([]);
  const latest = useRef(0);
  const ask = async (text) => {
    latest.current += 1;
    const mine = latest.current;
    try {
      const texts = await suggest?.(text.trim());
      if (texts && mine === latest.current) setSuggestions(texts.slice(0, 50));
    } catch (problem) {
      console.debug(problem);
    }
  };
  const list = suggest ? `${id}-suggestions` : undefined;
  const view = suggest
    ? html`<datalist id=${list}>${suggestions.map((text) => html`<option value=${text} />`)}</datalist>`
    : null;
  return { list, ask, view };
}

let made = 0;

function Field({ spec, problem, isFirst, check }) {
  const { name, label, type = 'text', options, rows, required, placeholder, unit, hint, suggest } = spec;
  const [id] = useState(() => {
    made += 1;
    return `field-${made}`;
  });
  const { list, ask, view } = useSuggestions(id, suggest);
  const common = {
    id,
    name,
    placeholder,
    required,
    list,
    autofocus: isFirst,
    autocomplete: type === 'password' ? 'current-password' : 'off',
    spellcheck: false,
    'aria-describedby': hint && `${id}-hint`,
    'aria-invalid': Boolean(problem),
    onInput: (event) => {
      ask(event.target.value);
      check(spec);
    },
    onChange: (event) => check(spec, event.target),
  };
  const text = textOf(spec);
  const kinds = { datetime: 'datetime-local', password: 'password', checkbox: 'checkbox' };
  const control =
    type === 'select'
      ? html`<select ...${common}>${options.map((option) => {
          const [key, title] = [option].flat();
          return html`<option value=${key} selected=${key === spec.value}>${title ?? key}</option>`;
        })}</select>`
      : type === 'json' || rows
        ? html`<textarea ...${common} rows=${rows || 6} class="code" defaultValue=${text}></textarea>`
        : html`<input ...${common} type=${kinds[type] || 'text'} inputmode=${type === 'number' ? 'decimal' : undefined}
            defaultValue=${type === 'checkbox' ? 'on' : text} defaultChecked=${type === 'checkbox' && Boolean(spec.value)} />`;
  const title = html`<label for=${id}>${label}${unit ? html`<span class="muted"> (${unit})</span>` : null}</label>`;
  return html`<div class=${`field ${type === 'checkbox' ? 'check' : ''} ${spec.half ? 'half' : ''}`}>
    ${type === 'checkbox' ? [control, title] : [title, control]}${view}
    ${hint ? html`<span class="hint" id=${`${id}-hint`}>${hint}</span>` : null}
    <span class="problem" role="alert" hidden=${!problem}>${problem}</span></div>`;
}

/** An error of the API as it is said at the field `name`: its label stands there, not the API's path. Of what is inside, the rest of the path. */
function saidAt({ message, field: place = '' }, name) {
  const [head] = message.split(': ', 1);
  if (!place.startsWith(name) || !head.endsWith(place) || head.length === message.length) return message;
  const inside = place
    .slice(name.length)
    .replace(/^\./, '')
    .replace(/^\[(\d+)\]/, (_all, index) => `no. ${Number(index) + 1}`);
  const rest = message.slice(head.length + 2);
  return inside ? `${inside}: ${rest}` : rest;
}

/**
 * Fields: [{name, label, type?: text|number|json|list|datetime|select|checkbox|password, value?, text?: as it is typed, hint?, required?,
 * options?, rows?, unit?, placeholder?, suggest?, half?: it shares its line in a wide dialog, group?: the name of a frame around it and others}].
 * `submit(values)` is async; empty ones are left out; what it throws is shown at the field it names.
 * → {place: the form's ref, send(event), isBusy, view(spec) of one field, problem: a view of what no field can be blamed for}.
 */
export function useForm(fields, submit) {
  const [problems, setProblems] = useState({});
  const [isBusy, setBusy] = useState(false);
  const isSending = useRef(false);
  const place = useRef(null);
  const inputOf = (spec) => place.current.elements.namedItem(spec.name);
  const send = async (event) => {
    event?.preventDefault();
    if (isSending.current) return;
    isSending.current = true;
    setBusy(true);
    setProblems({});
    try {
      const values = fields.map((spec) => [spec.name, read(spec, inputOf(spec))]);
      await submit(Object.fromEntries(values.filter(([, value]) => value !== undefined)));
    } catch (problem) {
      if (!problem.code && !problem.field) console.debug(problem);
      const { field = '' } = problem;
      const isAbout = ({ name }) => field === name || field.startsWith(`${name}.`) || field.startsWith(`${name}[`);
      const at = fields.find(isAbout);
      setProblems({ [at?.name ?? '']: at ? saidAt(problem, at.name) : problem.message });
      if (place.current && fields.length) {
        const input = inputOf(at || fields[0]);
        const folded = input.closest('details');
        if (folded) folded.open = true;
        input.focus();
      }
    }
    isSending.current = false;
    setBusy(false);
  };
  // What is no value is said when the field is left; what is lacking, when all is sent. A problem goes as one types, not
  // when a button is pressed: it would move under the pointer.
  const check = (spec, input) => {
    let message = '';
    try {
      if (input?.value.trim()) read(spec, input);
    } catch (problem) {
      message = problem.message;
    }
    if (message || !input) setProblems((old) => ({ ...old, [spec.name]: message }));
  };
  const view = (spec, isFirst) =>
    html`<${Field} key=${spec.name} spec=${spec} problem=${problems[spec.name]} isFirst=${isFirst} check=${check} />`;
  const problem = html`<p class="problem" role="alert" hidden=${!problems['']}>${problems['']}</p>`;
  return { place, send, isBusy, view, problem };
}

// -- dialogs ------------------------------------------------------------------------------------------

/** Texts and views as paragraphs. */
const paragraphs = (body) => [body].flat().map((part) => (typeof part === 'string' ? html`<p>${part}</p>` : part));

/** Opens a dialog: View({close}) → a promise of what `close` was called with; undefined when it was given up. */
export function open(title, View, { wide = false, kind = '' } = {}) {
  return new Promise((resolve) => {
    const dialog = document.createElement('dialog');
    dialog.className = `${kind} ${wide ? 'wide' : ''}`.trim();
    dialog.ariaLabel = title;
    let answer;
    const close = (value) => {
      answer = value;
      dialog.close();
    };
    // A click beside it closes it, as Escape does.
    dialog.addEventListener('mousedown', (event) => event.target === dialog && dialog.close());
    dialog.addEventListener('close', () => {
      render(null, dialog);
      dialog.remove();
      resolve(answer);
    });
    document.body.append(dialog);
    render(html`${kind ? null : html`<h2>${title}</h2>`}<${View} close=${close} />`, dialog);
    dialog.showModal();
  });
}

/** Asks before something that cannot be taken back → whether to do it. `body`: texts or views. */
export const confirm = ({ title, body = [], action = 'OK' }) =>
  open(
    title,
    ({ close }) => html`${paragraphs(body)}<div class="buttons">
      <button type="button" autofocus onClick=${() => close()}>Cancel</button>
      <button type="button" class="danger" onClick=${() => close(true)}>${action}</button></div>`,
  );

/** Fields in order, those of a group in a frame with its name. */
const grouped = (fields, { view }) =>
  Object.entries(Object.groupBy(fields, ({ group = '' }) => group)).map(([title, some]) => {
    const views = some.map((spec) => view(spec, spec === fields[0]));
    return title ? html`<fieldset key=${title}><legend>${title}</legend>${views}</fieldset>` : views;
  });

function Asked({ close, body = [], fields, action = 'Save', danger = false, submit, dryRun }) {
  const [status, setStatus] = useState('');
  const isDry = useRef(false);
  const form = useForm(fields, async (values) => {
    setStatus('');
    if (isDry.current) setStatus(await dryRun(values));
    else close((await submit(values)) ?? true);
  });
  const send = (dry) => (event) => {
    isDry.current = dry;
    return form.send(event);
  };
  return html`<form novalidate ref=${form.place} onSubmit=${(event) => (danger ? event.preventDefault() : send(false)(event))}>
    ${paragraphs(body)}${grouped(fields, form)}${form.problem}
    <p role="status">${status}</p>
    <div class="buttons"><button type="button" onClick=${() => close()}>Cancel</button>
      ${dryRun ? html`<button type="button" disabled=${form.isBusy} onClick=${send(true)}>Dry run</button>` : null}
      <button type=${danger ? 'button' : 'submit'} class=${danger ? 'danger' : 'primary'} disabled=${form.isBusy}
        onClick=${danger ? send(false) : undefined}>${action}</button></div></form>`;
}

/**
 * Asks for values: `fields` and `submit` as of useForm → submit's answer; undefined when it was given up. `dryRun(values)`:
 * what would come of it, as a text.
 */
export const form = ({ title, wide, ...asked }) =>
  open(title, ({ close }) => html`<${Asked} close=${close} ...${asked} />`, { wide });

/** Shows something until it is closed. */
export const show = (title, body) =>
  open(
    title,
    ({ close }) =>
      html`${body}<div class="buttons"><button type="button" class="primary" onClick=${() => close()}>Close</button></div>`,
    { wide: true },
  );

// -- messages; errors stay until they are closed, what can be undone says so for a while --------------

const SHOWN_MS = 6000;
const UNDO_MS = 10000;
const MOST = 4;

export const isTyping = (element) =>
  element.closest?.('input:not([type=checkbox]), textarea, select, [contenteditable]');

document.addEventListener('keydown', (event) => {
  const isUndo = event.key === 'z' && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
  const undo = [...document.querySelectorAll('#toasts .undo')].at(-1);
  if (!isUndo || !undo || isTyping(event.target) || document.querySelector('dialog[open]')) return;
  event.preventDefault();
  undo.click();
});

/** Says something. `undo`: an action; a button beside the text does it, for ten seconds. */
export function toast(text, kind = 'ok', { undo } = {}) {
  const place = document.getElementById('toasts');
  const item = document.createElement('div');
  item.className = `toast is-${kind}`;
  if (kind === 'error') item.role = 'alert';
  // The focus that was in it goes on in the page, not to nowhere.
  const leave = () => {
    if (item.contains(document.activeElement)) document.getElementById('main')?.focus();
    item.remove();
  };
  const takeBack = () => {
    leave();
    act(undo, 'Undone.');
  };
  const back =
    undo &&
    html`<button type="button" class="small undo" title="Ctrl Z" aria-keyshortcuts="Control+Z Meta+Z" onClick=${takeBack}>Undo</button>`;
  render(html`<span>${text}</span>${back}<button type="button" class="quiet" onClick=${leave}>Close</button>`, item);
  place.append(item);
  while (place.childElementCount > MOST) place.firstElementChild.remove();
  // Not while the mouse or the focus is in it.
  const later = () => (item.matches(':hover, :focus-within') ? setTimeout(later, 1000) : leave());
  if (kind !== 'error') setTimeout(later, undo ? UNDO_MS : SHOWN_MS);
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
    return answer ?? true;
  } catch (problem) {
    failed(problem);
    return undefined;
  }
}
