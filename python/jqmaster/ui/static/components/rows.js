// Tables of views: sorted columns, a choice of rows, rows that the keyboard walks, pages by cursor in the address.
import { navigate, query, withQuery } from '../router.js';
import { html, useData, useEffect, useQuery, useRef } from '../view.js';

const classes = ({ kind, hide }) => [kind, hide ? `hide-${hide}` : ''].filter(Boolean).join(' ') || undefined;

/** "-oldest" → ['oldest', true]: the column, and whether the largest comes first. */
export const sortOf = (text) => (text?.startsWith('-') ? [text.slice(1), true] : [text || '', false]);

function Title({ column, sort, onSort }) {
  const text = column.title || html`<span class="hidden-text">Actions</span>`;
  if (!column.sort || !onSort) return html`<th scope="col" class=${classes(column)} title=${column.tip}>${text}</th>`;
  const [name, isDown] = sortOf(sort);
  const isBy = name === column.sort;
  // Numbers are of interest from the largest, texts from A.
  const next = isBy ? !isDown : column.kind === 'number';
  return html`<th scope="col" class=${classes(column)} title=${column.tip}
    aria-sort=${isBy ? (isDown ? 'descending' : 'ascending') : undefined}>
    <button type="button" class="sort" onClick=${() => onSort(`${next ? '-' : ''}${column.sort}`)}>${text}
      <span aria-hidden="true">${isBy ? (isDown ? ' ↓' : ' ↑') : ''}</span></button>
  </th>`;
}

/**
 * columns: [{title, cell(row) → view, kind?: 'number'|'wide'|'actions', hide?: 'narrow' (phones), 'tight' (tablets as well), tip?, sort?: name of the order}]
 * rows; rowKey(row) → text; label: what the table is; empty: a view for no rows
 * sort, onSort(text): the order in force, as "name" or "-name", and what to do when another is asked for
 * chosen: a Set of keys, onChoose(Set): rows can be chosen (shift: from the last one to here)
 * isOld: the rows answer another question: nobody chooses from them
 * below?(row): a view to stand under the row; open?: Enter follows the row's first link
 * children: under the table, such as <Pager>
 */
export function Table(given) {
  const { columns, rows, rowKey, label, empty, sort, onSort, chosen, onChoose, isOld, below, children } = given;
  const anchor = useRef(null);
  const keys = rows.map(rowKey);
  const choose = (key, isChosen, isRange) => {
    const next = new Set(chosen);
    const from = isRange ? keys.indexOf(anchor.current) : -1;
    const here = keys.indexOf(key);
    const range = from < 0 ? [key] : keys.slice(Math.min(from, here), Math.max(from, here) + 1);
    anchor.current = key;
    for (const one of range) isChosen ? next.add(one) : next.delete(one);
    onChoose(next);
  };
  const onKey = (event) => {
    if (event.target !== event.currentTarget) return;
    const row = event.currentTarget;
    if (event.key === 'Enter') {
      event.preventDefault();
      (row.querySelector('a[data-open]') || row.querySelector('td a'))?.click();
    } else if (event.key.toLowerCase() === 'x' && chosen)
      choose(row.dataset.key, event.shiftKey || !chosen.has(row.dataset.key), event.shiftKey);
  };
  const on = chosen ? keys.filter((key) => chosen.has(key)).length : 0;
  const width = columns.length + (chosen ? 1 : 0);
  const all = html`<th class="choose"><input type="checkbox" aria-label="Choose all of this page" disabled=${!keys.length || isOld}
    checked=${on > 0 && on === keys.length} indeterminate=${on > 0 && on < keys.length}
    onChange=${(event) => onChoose(new Set(event.target.checked ? [...chosen, ...keys] : [...chosen].filter((key) => !keys.includes(key))))} /></th>`;
  const line = (
    row,
    key,
  ) => html`<tr key=${key} tabindex="0" data-key=${key} class=${chosen?.has(key) ? 'chosen' : ''} onKeyDown=${onKey}>
    ${
      chosen
        ? html`<td class="choose"><input type="checkbox" class="chooser" tabindex="-1" aria-label=${`Choose ${key}`}
            checked=${chosen.has(key)} onClick=${(event) => choose(key, event.target.checked, event.shiftKey)} /></td>`
        : null
    }
    ${columns.map(
      (column, i) => html`<td class=${classes(column)} data-label=${i ? column.title || '' : undefined}>
        <div class="cell">${column.cell(row)}</div></td>`,
    )}
  </tr>`;
  return html`<div class=${isOld ? 'table loading' : 'table'}>
    <div class="scroll" tabindex="0" role="region" aria-label=${label}>
      <table class="cards" aria-label=${label}>
        <thead><tr>${chosen ? all : null}
          ${columns.map((column) => html`<${Title} column=${column} sort=${sort} onSort=${onSort} />`)}</tr></thead>
        <tbody inert=${Boolean(isOld)}>${rows.map((row, i) => {
          const under = below?.(row);
          return [
            line(row, keys[i]),
            under ? html`<tr class="below" key=${`below ${keys[i]}`}><td colspan=${width}>${under}</td></tr>` : null,
          ];
        })}</tbody>
      </table>
    </div>
    ${rows.length ? null : empty}
    ${children}
  </div>`;
}

// Where one came from, page by page; after a reload only the first page is known.
const trails = new Map();

/**
 * A list by pages, its cursor in the address (`?at=`): load(cursor, signal) → {rows, cursor}; looked at again every `ms`.
 * Changes of `deps` (the filters) should come with setQuery({…, at: ''}).
 * → useData's answer, and pager: {number, back, forth} with actions or null.
 */
export function usePages(load, { ms = 0, deps = [] } = {}) {
  const [{ at = '' }] = useQuery();
  const state = useData((signal) => load(at, signal), { ms, deps: [at, ...deps] });
  const key = `${location.pathname} ${JSON.stringify(deps)}`;
  const trail = trails.get(key) || [];
  const known = at ? trail.indexOf(at) : -1;
  const go = (cursor) => navigate(withQuery(location.pathname.replace(/^\/ui/, '') || '/', { ...query(), at: cursor }));
  const next = state.data?.cursor;
  const pager = {
    number: at ? (known < 0 ? 0 : known + 2) : 1,
    back: at ? () => go(known > 0 ? trail[known - 1] : '') : null,
    forth:
      next && !state.isLoading
        ? () => {
            trails.set(key, [...trail.slice(0, known + 1), next]);
            go(next);
          }
        : null,
  };
  return { ...state, pager };
}

/** <Pager of=${pager}>how far it looked</Pager> */
export function Pager({ of, children }) {
  const moved = useRef(of.number);
  const place = useRef(null);
  useEffect(() => {
    if (moved.current !== of.number) place.current?.closest('.table')?.scrollIntoView({ block: 'nearest' });
    moved.current = of.number;
  }, [of.number]);
  if (!of.back && !of.forth && !children) return null;
  return html`<div class="pager" ref=${place}>
    <button type="button" class="quiet" disabled=${!of.back} onClick=${of.back}>${of.number ? '← Previous' : '← First page'}</button>
    <span class="muted">${children || (of.number ? `Page ${of.number}` : '')}</span>
    <button type="button" class="quiet" disabled=${!of.forth} onClick=${of.forth}>Next →</button>
  </div>`;
}
