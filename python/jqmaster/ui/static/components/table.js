// Tables with pages by cursor, rows that the keyboard walks, and a selection.
import { button, fill, h } from '../dom.js';
import { failed } from './toast.js';

/**
 * columns: [{title, cell(row) → text or element(s), kind?: 'number'|'wide'|'actions', hide?: 'narrow', tip?}]
 * load(cursor, signal) → {rows, cursor}; key(row) → text; open?(row) → path or action; empty: text or element;
 * select?(keys): rows can be chosen (shift: from the last one to here), called when the choice changes
 * start?: the cursor of the page that is shown first; below?(row): an element to stand under the row; label: what the table is
 * → {element, refresh(), reset(), redraw(), focus(key), selected() → keys, clear(), rows() → rows}
 */
export function table(options) {
  const { columns, load, key, open, empty = 'Nothing here.', select, below, label, start = '' } = options;
  const body = h('tbody');
  const chosen = new Map();
  let cursors = [start];
  let position = 0;
  let rows = [];
  let loading = null;
  let anchor = null;
  let next = '';
  const all = select
    ? h('input', {
        type: 'checkbox',
        'aria-label': 'Choose all of this page',
        disabled: true,
        on: { change: chooseAll },
      })
    : null;
  const head = h(
    'tr',
    {},
    all ? h('th', { class: 'choose' }, all) : null,
    columns.map((column) =>
      h(
        'th',
        {
          scope: 'col',
          class: classes(column),
          title: column.tip,
        },
        column.title || h('span', { class: 'hidden-text' }, 'Actions'),
      ),
    ),
  );
  const message = h('div', { class: 'empty', hidden: true });
  const back = button('← Previous', () => go(-1), { class: 'quiet' });
  const forth = button('Next →', () => go(1), { class: 'quiet' });
  const where = h('span', { class: 'muted' });
  const pager = h('div', { class: 'pager', hidden: true }, back, where, forth);
  const element = h(
    'div',
    { class: 'table' },
    h(
      'div',
      { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label },
      h('table', { class: 'cards', 'aria-label': label }, h('thead', {}, head), body),
    ),
    message,
    pager,
  );

  function classes({ kind, hide }) {
    return [kind, hide ? `hide-${hide}` : ''].filter(Boolean).join(' ');
  }

  function chooseAll() {
    for (const row of rows) choose(row, all.checked, false);
    mark();
  }

  function choose(row, isChosen, isLast = true) {
    if (isChosen) chosen.set(key(row), row);
    else chosen.delete(key(row));
    if (isLast) mark();
  }

  /** One row, or with shift all from the one chosen last. */
  function chooseFrom(row, isChosen, isRange) {
    const here = rows.indexOf(row);
    const there = isRange ? rows.findIndex((one) => key(one) === anchor) : -1;
    anchor = key(row);
    if (there < 0) choose(row, isChosen);
    else {
      for (const one of rows.slice(Math.min(here, there), Math.max(here, there) + 1)) choose(one, isChosen, false);
      mark();
    }
  }

  function mark() {
    for (const line of body.rows) {
      const isChosen = chosen.has(line.dataset.key);
      line.classList.toggle('chosen', isChosen);
      const box = line.querySelector('input.chooser');
      if (box) box.checked = isChosen;
    }
    if (all) {
      const on = rows.filter((row) => chosen.has(key(row))).length;
      all.checked = on > 0 && on === rows.length;
      all.indeterminate = on > 0 && on < rows.length;
      // A choice of nothing would leave “all that match” to the buttons above.
      all.disabled = !rows.length || body.inert;
    }
    select?.([...chosen.keys()]);
  }

  function line(row) {
    const id = key(row);
    const box = select
      ? h(
          'td',
          { class: 'choose' },
          h('input', {
            type: 'checkbox',
            class: 'chooser',
            tabindex: -1,
            'aria-label': `Choose ${id}`,
            checked: chosen.has(id),
            on: { click: (event) => chooseFrom(row, event.target.checked, event.shiftKey) },
          }),
        )
      : null;
    const made = h(
      'tr',
      { tabindex: 0, data: { key: id }, class: chosen.has(id) ? 'chosen' : '' },
      box,
      columns.map((column, i) =>
        h(
          'td',
          { class: classes(column), data: i ? { label: column.title || '' } : {} },
          h('div', { class: 'cell' }, column.cell(row)),
        ),
      ),
    );
    made.addEventListener('keydown', (event) => {
      if (event.target !== made) return;
      if (event.key === 'Enter' && open) {
        event.preventDefault();
        (made.querySelector('a[data-open]') || made.querySelector('td a'))?.click();
      } else if (event.key.toLowerCase() === 'x' && select)
        chooseFrom(row, event.shiftKey || !chosen.has(id), event.shiftKey);
    });
    return made;
  }

  function lines(row) {
    const under = below?.(row);
    if (!under) return [line(row)];
    return [line(row), h('tr', { class: 'below' }, h('td', { colspan: columns.length + (select ? 1 : 0) }, under))];
  }

  function draw(page) {
    rows = page.rows;
    next = page.cursor;
    const focused = body.contains(document.activeElement) ? document.activeElement.closest('tr') : null;
    const inner =
      focused && focused !== document.activeElement
        ? [...focused.querySelectorAll('a,button,input')].indexOf(document.activeElement)
        : -1;
    body.inert = false;
    fill(body, rows.map(lines));
    if (focused) {
      const again = [...body.rows].find((one) => one.dataset.key === focused.dataset.key);
      (inner >= 0 ? again?.querySelectorAll('a,button,input')[inner] : again)?.focus({ preventScroll: true });
    }
    cursors.length = position + 1;
    if (page.cursor) cursors.push(page.cursor);
    const isEmpty = !rows.length && !page.cursor && position === 0;
    message.hidden = !isEmpty;
    if (isEmpty) fill(message, typeof empty === 'function' ? empty() : empty);
    pager.hidden = position === 0 && !page.cursor;
    back.disabled = position === 0;
    forth.disabled = !page.cursor;
    where.textContent = rows.length
      ? `Page ${position + 1}`
      : page.cursor
        ? 'Nothing found so far; there is more to look at'
        : 'End';
    if (all) mark();
  }

  async function refresh({ quiet = true } = {}) {
    loading?.abort();
    const mine = new AbortController();
    loading = mine;
    if (!quiet) element.classList.add('loading');
    try {
      const page = await load(cursors[position], mine.signal);
      if (loading === mine) draw(page);
    } catch (problem) {
      if (problem.name !== 'AbortError' && loading === mine) {
        if (quiet) throw problem;
        failed(problem);
      }
    } finally {
      if (loading === mine) element.classList.remove('loading');
    }
  }

  async function go(step) {
    position = Math.max(0, Math.min(cursors.length - 1, position + step));
    await refresh({ quiet: false });
    element.scrollIntoView({ block: 'nearest' });
    body.rows[0]?.focus({ preventScroll: true });
  }

  async function reset() {
    cursors = [''];
    position = 0;
    anchor = null;
    chosen.clear();
    // What is still shown belongs to another question: nobody chooses from it.
    body.inert = true;
    mark();
    await refresh({ quiet: false });
  }

  return {
    element,
    refresh,
    reset,
    rows: () => rows,
    selected: () => [...chosen.keys()],
    redraw: () => draw({ rows, cursor: next }),
    focus: (id) => [...body.rows].find((one) => one.dataset.key === id)?.focus({ preventScroll: true }),
    clear() {
      chosen.clear();
      mark();
    },
  };
}
