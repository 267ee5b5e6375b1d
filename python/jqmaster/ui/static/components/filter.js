// The filters of a page: they stand in the address, and the slash key leads to the first.
import { button, debounced, h } from '../dom.js';
import { query, setQuery } from '../router.js';

let made = 0;

/**
 * fields: [{name, label, type?: 'text'|'search'|'select'|'datetime', options?, placeholder?, suggest?: async (text) → texts}]
 * change(values): called when one has changed; the address has it by then
 * → {element, values()}
 */
export function filterBar({ fields, change }) {
  const inputs = new Map();
  let told = null;
  const tell = () => {
    const found = values();
    // A field that is left tells once more what was typed.
    const text = JSON.stringify(found);
    if (text === told) return;
    told = text;
    setQuery(Object.fromEntries(fields.map(({ name }) => [name, found[name]])));
    clear.hidden = !Object.keys(found).length;
    change(found);
  };
  const soon = debounced(tell, 300);

  function values() {
    const found = {};
    for (const [name, input] of inputs) {
      const text = input.value.trim();
      if (text) found[name] = text;
    }
    return found;
  }

  const boxes = fields.map((spec, index) => {
    made += 1;
    const id = `filter-${made}`;
    const at = query()[spec.name] || '';
    const common = { id, name: spec.name, 'data-filter': index === 0 ? '1' : undefined };
    let input;
    let list = null;
    if (spec.type === 'select') {
      input = h(
        'select',
        { ...common, on: { change: tell } },
        [['', spec.placeholder || 'any'], ...spec.options].map((option) => {
          const [key, label] = Array.isArray(option) ? option : [option, option];
          return h('option', { value: key, selected: key === at }, label);
        }),
      );
    } else {
      list = spec.suggest ? h('datalist', { id: `${id}-list` }) : null;
      input = h('input', {
        ...common,
        type: spec.type === 'datetime' ? 'datetime-local' : spec.type || 'text',
        placeholder: spec.placeholder || '',
        autocomplete: 'off',
        spellcheck: 'false',
        list: list ? `${id}-list` : undefined,
        value: at,
        on: { input: soon, change: tell, keydown: (event) => event.key === 'Enter' && tell() },
      });
      if (list) complete(input, list, spec.suggest);
    }
    inputs.set(spec.name, input);
    return h('div', { class: 'filter' }, h('label', { for: id }, spec.label), input, list);
  });
  const clear = button(
    'Clear',
    () => {
      for (const input of inputs.values()) input.value = '';
      tell();
    },
    { class: 'quiet' },
  );
  clear.hidden = !Object.keys(values()).length;
  told = JSON.stringify(values());
  return { element: h('div', { class: 'filters', role: 'search' }, boxes, clear), values };
}

function complete(input, list, suggest) {
  let latest = 0;
  const look = debounced(async () => {
    latest += 1;
    const mine = latest;
    try {
      const found = await suggest(input.value.trim());
      if (mine === latest) list.replaceChildren(...found.slice(0, 50).map((text) => h('option', { value: text })));
    } catch (problem) {
      console.debug(problem);
    }
  }, 150);
  input.addEventListener('input', look);
  input.addEventListener('focus', look);
}
