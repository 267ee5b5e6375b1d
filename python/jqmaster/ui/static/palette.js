// The palette: one field that finds jobs, all that has a name, pages and actions. Ctrl-K, or the slash where no filter
// is.
import { api, path } from './api.js';
import { Badge } from './components/badge.js';
import { debounced, h } from './dom.js';
import { count, cut } from './format.js';
import { whereOfLine } from './jobs/queryline.js';
import { inWords, queryOf } from './jobs/where.js';
import { inBar } from './pages/index.js';
import { navigate, withQuery } from './router.js';
import { html, render } from './view.js';

const SHOWN = 5;
const LONGEST = 80; // of a name that is looked for
const ID = /^[0-9a-f]{14}(?:[0-9a-f]{2})?$/;

// Of what a search finds: its title, a hit's text, and where it leads.
const KINDS = {
  jobs: [
    'Jobs',
    (job) => html`<${Badge} word=${job.status} /> ${cut(job.name, 60)} <code>${job.id}</code>`,
    (job) => path`/job/${job.id}`,
  ],
  queues: ['Queues', (name) => cut(name, 80), (name) => path`/queue/${name}`],
  names: ['Names of jobs', (name) => cut(name, 80), (name) => withQuery('/jobs', { name })],
  workers: ['Workers', ({ id, name }) => html`${cut(name, 60)} <code>${id}</code>`, ({ id }) => path`/worker/${id}`],
  constraints: ['Constraints', (id) => cut(id, 80), (id) => path`/constraint/${id}`],
  schedules: ['Schedules', (id) => cut(id, 80), () => '/schedules'],
  tags: ['Tags', (tag) => cut(tag, 80), (tag) => withQuery('/jobs', { tag })],
  groups: ['Failures', (group) => cut(group, 80), (group) => withQuery('/jobs', { group })],
};

// Buttons of the header that are actions here as well.
const BUTTONS = { theme: 'Change the colours', help: 'Keyboard help' };

/** Pages and actions: [{text, go}] */
function places(text) {
  const wanted = text.toLowerCase();
  const found = inBar().map((page) => ({ text: page.title, key: `g ${page.key}`, go: () => navigate(page.path) }));
  for (const [id, title] of Object.entries(BUTTONS)) {
    const element = document.getElementById(id);
    if (element) found.push({ text: title, go: () => element.click() });
  }
  return found.filter((one) => one.text.toLowerCase().includes(wanted));
}

/** The list of jobs that a line describes, in words; null for none. */
function line(text) {
  try {
    const words = inWords(whereOfLine(text, Date.now())).join('; ');
    return { text: `Find jobs: ${words}`, go: () => navigate(withQuery('/jobs', { q: text })) };
  } catch {
    return null;
  }
}

/** The jobs that a line describes, or that have this id. */
async function jobsOf(text, options) {
  if (ID.test(text)) return { jobs: [], looked: 0 };
  let where;
  try {
    where = whereOfLine(text, Date.now());
  } catch {
    return { jobs: [], looked: 0 };
  }
  const order = { recent: 1, brief: 1, looked: 1, count: SHOWN };
  return api.get('/jobs', { ...queryOf(where), ...order }, options);
}

/** [title, note, items] of all that is to be shown. `found`: the answer of a search, or null. */
function groupsOf(text, found) {
  const groups = [];
  if (ID.test(text))
    groups.push(['Job', '', [{ text: html`<code>${text}</code>`, go: () => navigate(path`/job/${text}`) }]]);
  for (const [kind, [title, show, target]] of Object.entries(KINDS)) {
    const hits = found?.[kind] || [];
    const items = hits.map((one) => ({ text: show(one), go: () => navigate(target(one)) }));
    if (items.length) groups.push([title, found.more.includes(kind) ? 'there may be more' : '', items]);
  }
  const jobs = text && line(text);
  if (jobs) groups.push(['Search', found ? `looked at ${count(found.looked)} jobs` : '', [jobs]]);
  const some = places(text);
  if (some.length) groups.push(['Pages and actions', '', some]);
  return groups;
}

class Palette {
  constructor() {
    this.groups = [];
    this.items = [];
    this.at = 0;
    this.asked = null;
    this.list = h('div', { id: 'palette-list', role: 'listbox', 'aria-label': 'Found', class: 'palette-list' });
    this.told = h('p', { class: 'muted palette-told', role: 'status' });
    this.input = h('input', {
      type: 'text',
      role: 'combobox',
      'aria-label': 'Search',
      'aria-expanded': 'true',
      'aria-controls': 'palette-list',
      'aria-autocomplete': 'list',
      autocomplete: 'off',
      spellcheck: 'false',
      placeholder: 'Job id, queue, worker, tag, … or customer.id:acme slower:30s',
      on: { input: () => this.typed(), keydown: (event) => this.pressed(event) },
    });
    this.dialog = h('dialog', { class: 'palette', 'aria-label': 'Search' }, this.input, this.told, this.list);
    this.look = debounced(() => this.search(), 150);
  }

  open() {
    document.body.append(this.dialog);
    this.dialog.addEventListener('mousedown', (event) => event.target === this.dialog && this.dialog.close());
    this.dialog.addEventListener('close', () => {
      this.asked?.abort();
      this.dialog.remove();
    });
    this.dialog.showModal();
    this.draw(null);
    this.input.focus();
  }

  get text() {
    return this.input.value.trim();
  }

  typed() {
    this.asked?.abort();
    this.told.textContent = this.text ? 'Searching…' : '';
    this.draw(null);
    this.look();
  }

  async search() {
    const { text } = this;
    if (!text || !this.dialog.open) return;
    const mine = new AbortController();
    this.asked = mine;
    try {
      const options = { signal: mine.signal };
      const [names, jobs] = await Promise.all([
        api.get('/search', { text: text.slice(0, LONGEST), count: SHOWN }, options),
        jobsOf(text, options),
      ]);
      const found = { ...names, ...jobs, more: [...names.more, ...(jobs.cursor ? ['jobs'] : [])] };
      if (text !== this.text || !this.dialog.open) return;
      this.draw(found);
      const sum = Object.keys(KINDS).reduce((all, kind) => all + found[kind].length, 0);
      this.told.textContent = sum ? '' : 'Nothing is called so.';
    } catch (problem) {
      if (problem.name !== 'AbortError' && text === this.text) this.told.textContent = problem.message;
    }
  }

  draw(found) {
    this.groups = groupsOf(this.text, found);
    this.items = this.groups.flatMap(([, , items]) => items);
    this.mark(0);
  }

  /** Shows all that was found, with one of it chosen. */
  mark(index) {
    const size = this.items.length;
    this.at = size ? (index + size) % size : 0;
    const option = (item) => {
      const at = this.items.indexOf(item);
      return html`<div role="option" id=${`palette-${at}`} class="palette-option" aria-selected=${String(at === this.at)}
        onMouseMove=${() => this.at !== at && this.mark(at)} onClick=${() => this.choose(at)}>
        <span>${item.text}</span>${item.key ? html`<kbd>${item.key}</kbd>` : null}</div>`;
    };
    render(
      this.groups.map(
        ([title, note, items], at) => html`<div role="group" aria-labelledby=${`palette-group-${at}`}>
          <div class="palette-title" id=${`palette-group-${at}`}>${title}${note ? html`<span class="muted"> · ${note}</span>` : null}</div>
          ${items.map(option)}</div>`,
      ),
      this.list,
    );
    this.list.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
    if (size) this.input.setAttribute('aria-activedescendant', `palette-${this.at}`);
    else this.input.removeAttribute('aria-activedescendant');
  }

  choose(index) {
    const item = this.items[index];
    if (!item) return;
    this.dialog.close();
    item.go();
  }

  pressed(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: SHOWN, PageUp: -SHOWN };
    if (steps[event.key]) this.mark(this.at + steps[event.key]);
    else if (event.key === 'Enter') this.choose(this.at);
    else return;
    event.preventDefault();
  }
}

const isTyping = (element) => element.closest?.('input:not([type=checkbox]), textarea, select, [contenteditable]');

/** Ctrl-K, the slash and the button `#search` of the header open it. */
export function startPalette() {
  const open = () => {
    if (!document.querySelector('dialog[open], form.login')) new Palette().open();
  };
  document.getElementById('search')?.addEventListener('click', open);
  document.addEventListener('keydown', (event) => {
    const isCall = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === 'k';
    const isSlash = event.key === '/' && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event.target);
    if (!isCall && !(isSlash && !document.querySelector('#main [data-filter]'))) return;
    event.preventDefault();
    open();
  });
}
