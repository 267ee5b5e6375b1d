// Fields of forms: what is typed becomes a value of the API, or an error at the field.

import { parse, stringify } from '../api.js';
import { h } from '../dom.js';
import { jsonProblem } from '../jobs/jsontext.js';

let made = 0;

function fault(name, message) {
  return Object.assign(new Error(message), { field: name });
}

const READERS = {
  text: (text) => text,
  number: (text, name) => {
    const value = Number(text);
    if (text.trim() === '' || Number.isNaN(value)) throw fault(name, `“${text}” is not a number`);
    return value;
  },
  json: (text, name) => {
    try {
      return parse(text);
    } catch (problem) {
      const at = jsonProblem(text);
      throw fault(name, `not JSON: ${at ? `line ${at.line}, column ${at.column}: ${at.message}` : problem.message}`);
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

function control({ type = 'text', value, options, rows, required, placeholder, min, max, step }, id, hintId) {
  const common = { id, 'aria-describedby': hintId, placeholder };
  if (type === 'select') {
    return h(
      'select',
      common,
      options.map((option) => {
        const [key, label] = Array.isArray(option) ? option : [option, option];
        return h('option', { value: key, selected: key === value }, label);
      }),
    );
  }
  if (type === 'checkbox') return h('input', { ...common, type, checked: Boolean(value) });
  if (type === 'json' || rows) {
    const text = type === 'json' ? (value === undefined ? '' : stringify(value, 2)) : (value ?? '');
    return h('textarea', { ...common, rows: rows || 6, spellcheck: 'false', class: 'code', value: text });
  }
  const kinds = { number: 'text', datetime: 'datetime-local', password: 'password' };
  return h('input', {
    ...common,
    type: kinds[type] || 'text',
    inputmode: type === 'number' ? 'decimal' : undefined,
    autocomplete: type === 'password' ? 'current-password' : 'off',
    spellcheck: 'false',
    min,
    max,
    step,
    required: Boolean(required),
    value: Array.isArray(value) ? value.join(', ') : (value ?? ''),
  });
}

/**
 * {name, label, type: text|number|json|list|datetime|select|checkbox, value, hint?, required?, options?, rows?, unit?, placeholder?,
 *  half?: it shares its line in a wide dialog}
 * → {name, element, value(), setProblem(text), focus()}. value(): undefined when it is empty.
 */
export function field(spec) {
  made += 1;
  const id = `field-${made}`;
  const problem = h('span', { class: 'problem', role: 'alert', hidden: true });
  const hint = spec.hint ? h('span', { class: 'hint', id: `${id}-hint` }, spec.hint) : null;
  const input = control(spec, id, hint ? `${id}-hint` : undefined);
  const label = h('label', { for: id }, spec.label, spec.unit ? h('span', { class: 'muted' }, ` (${spec.unit})`) : '');
  const isCheck = spec.type === 'checkbox';
  const element = h(
    'div',
    { class: `field ${isCheck ? 'check' : ''} ${spec.half ? 'half' : ''}` },
    isCheck ? [input, label] : [label, input],
    hint,
    problem,
  );
  return {
    name: spec.name,
    element,
    input,
    value() {
      if (isCheck) return input.checked;
      const text = input.value;
      if (text.trim() === '') {
        if (spec.required) throw fault(spec.name, `${spec.label} is needed`);
        return undefined;
      }
      return (READERS[spec.type] || READERS.text)(text, spec.name);
    },
    setProblem(text) {
      problem.textContent = text;
      problem.hidden = !text;
      input.setAttribute('aria-invalid', String(Boolean(text)));
    },
    focus: () => input.focus(),
  };
}

/** An error of the API as it is said at the field `name`: its label stands there, not the API's path. Of what is inside, the rest of the path. */
export function saidAt({ message, field: place = '' }, name) {
  const [head] = message.split(': ', 1);
  if (!place.startsWith(name) || !head.endsWith(place) || head.length === message.length) return message;
  const inside = place
    .slice(name.length)
    .replace(/^\./, '')
    .replace(/^\[(\d+)\]/, (_all, index) => `no. ${Number(index) + 1}`);
  const rest = message.slice(head.length + 2);
  return inside ? `${inside}: ${rest}` : rest;
}

/** The values of fields by name, empty ones left out. Throws an error with `field`. */
export function read(fields) {
  const values = {};
  for (const one of fields) {
    const value = one.value();
    if (value !== undefined) values[one.name] = value;
  }
  return values;
}
