// The filters of a view: they stand in the address, and the slash key leads to the first.
import { html, useEffect, useQuery, useRef, useState } from '../view.js';

const PAUSE_MS = 300;

function Choice({ id, spec, value, isFirst, onChange }) {
  return html`<select id=${id} name=${spec.name} data-filter=${isFirst ? '1' : undefined} value=${value}
    onChange=${(event) => onChange(event.target.value)}>
    ${[['', spec.placeholder || 'any'], ...spec.options].map((option) => {
      const [key, label] = Array.isArray(option) ? option : [option, option];
      return html`<option value=${key} selected=${key === value}>${label}</option>`;
    })}
  </select>`;
}

function Words({ id, spec, value, isFirst, onChange }) {
  const [text, setText] = useState(value);
  const [found, setFound] = useState([]);
  const timer = useRef(0);
  const told = useRef(value);
  // From elsewhere, such as a link or "Clear".
  useEffect(() => {
    if (value !== told.current) setText(value);
    told.current = value;
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const tell = (next) => {
    clearTimeout(timer.current);
    if (next.trim() === told.current) return;
    told.current = next.trim();
    onChange(told.current);
  };
  const suggest = async (next) => {
    try {
      if (spec.suggest) setFound((await spec.suggest(next.trim())).slice(0, 50));
    } catch (problem) {
      console.debug(problem);
    }
  };
  const type = (event) => {
    const next = event.target.value;
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      tell(next);
      suggest(next);
    }, PAUSE_MS);
  };
  return html`<input id=${id} name=${spec.name} data-filter=${isFirst ? '1' : undefined}
      type=${spec.type === 'datetime' ? 'datetime-local' : spec.type || 'text'} placeholder=${spec.placeholder || ''}
      autocomplete="off" spellcheck="false" list=${spec.suggest ? `${id}-list` : undefined} value=${text}
      onInput=${type} onChange=${(event) => tell(event.target.value)} onFocus=${() => suggest(text)}
      onKeyDown=${(event) => event.key === 'Enter' && tell(event.target.value)} />
    ${spec.suggest ? html`<datalist id=${`${id}-list`}>${found.map((one) => html`<option value=${one} />`)}</datalist>` : null}`;
}

/**
 * fields: [{name, label, type?: 'text'|'search'|'select'|'datetime', options?, placeholder?, suggest?: async (text) → texts}]
 * Their values are those of useQuery(); a change of one leads to the first page (`at` goes).
 */
export function FilterBar({ fields, children }) {
  const [query, setQuery] = useQuery();
  const isAny = fields.some(({ name }) => query[name]);
  return html`<div class="filters" role="search">
    ${fields.map((spec, i) => {
      const Field = spec.type === 'select' ? Choice : Words;
      const id = `filter-${spec.name}`;
      return html`<div class="filter" key=${spec.name}><label for=${id}>${spec.label}</label>
        <${Field} id=${id} spec=${spec} value=${query[spec.name] || ''} isFirst=${i === 0}
          onChange=${(value) => setQuery({ [spec.name]: value, at: '' })} /></div>`;
    })}
    ${children}
    ${
      isAny
        ? html`<button type="button" class="quiet"
            onClick=${() => setQuery({ ...Object.fromEntries(fields.map(({ name }) => [name, ''])), at: '' })}>Clear</button>`
        : null
    }
  </div>`;
}
