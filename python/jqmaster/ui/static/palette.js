// The palette: one field that finds jobs, all that has a name, pages and actions. Ctrl-K, or the slash where no filter is.
import { api, path, withQuery } from './api.js';
import { count, cut } from './format.js';
import { open } from './forms.js';
import { Badge } from './parts.js';
import { inWords, queryOf, whereOfLine } from './query.js';
import { html, mayOpen, navigate, useEffect, useRef, useState } from './view.js';

const SHOWN = 5;
const LONGEST = 80; // of a name that is looked for
const PAUSE_MS = 150;
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
  constraints: ['Limits', (id) => cut(id, 80), (id) => path`/limit/${id}`],
  schedules: ['Schedules', (id) => cut(id, 80), (id) => path`/schedule/${id}`],
  tags: ['Tags', (tag) => cut(tag, 80), (tag) => withQuery('/jobs', { tag })],
  groups: ['Failures', (group) => cut(group, 80), (group) => withQuery('/jobs', { group })],
};

// Buttons of the header that are actions here as well.
const BUTTONS = { theme: 'Change the theme', help: 'Keyboard help' };

/** The jobs that a line describes, as `where` of the API; null where it is none, or an id. */
function whereOf(text) {
  try {
    return text && mayOpen('/jobs') && !ID.test(text) ? whereOfLine(text, Date.now()) : null;
  } catch {
    return null;
  }
}

/** Everything of this name, and the jobs that the line describes. */
async function search(text, signal) {
  const where = whereOf(text);
  const order = { newest: 1, brief: 1, looked: 1, count: SHOWN };
  const [names, jobs] = await Promise.all([
    api.get('/search', { text: text.slice(0, LONGEST), count: SHOWN }, { signal }),
    where ? api.get('/jobs', { ...queryOf(where), ...order }, { signal }) : { jobs: [], looked: 0 },
  ]);
  return { ...names, ...jobs, more: [...names.more, ...(jobs.cursor ? ['jobs'] : [])] };
}

/** [title, note, [{text, go, key?}]] of all that is to be shown. `hits`: the answer of a search, or null. */
function groupsOf(text, hits, pages) {
  const to = (target) => () => navigate(target);
  const groups = Object.entries(KINDS).map(([kind, [title, show, target]]) => [
    title,
    hits?.more.includes(kind) ? 'there may be more' : '',
    (hits?.[kind] || []).map((hit) => ({ text: show(hit), go: to(target(hit)) })),
  ]);
  if (ID.test(text)) groups.unshift(['Job', '', [{ text: html`<code>${text}</code>`, go: to(path`/job/${text}`) }]]);
  const where = whereOf(text);
  const line = where && { text: `Find jobs: ${inWords(where).join('; ')}`, go: to(withQuery('/jobs', { q: text })) };
  groups.push(['Search', hits ? `looked at ${count(hits.looked)} jobs` : '', line ? [line] : []]);
  const places = pages.map((page) => ({ text: page.title, key: `g ${page.key}`, go: to(page.path) }));
  for (const [id, title] of Object.entries(BUTTONS))
    places.push({ text: title, go: () => document.getElementById(id).click() });
  const isNamed = (place) => place.text.toLowerCase().includes(text.toLowerCase());
  groups.push(['Pages and actions', '', places.filter(isNamed)]);
  return groups.filter(([, , items]) => items.length);
}

function Palette({ close, pages }) {
  const [text, setText] = useState('');
  const [answer, setAnswer] = useState({ text: '' }); // {text, hits?, problem?}
  const [at, setAt] = useState(0);
  const list = useRef(null);
  useEffect(() => {
    if (!text || !mayOpen('/jobs')) return undefined;
    const life = new AbortController();
    const timer = setTimeout(() => {
      search(text, life.signal).then(
        (hits) => setAnswer({ text, hits }),
        (problem) => problem.name !== 'AbortError' && setAnswer({ text, problem }),
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      life.abort();
    };
  }, [text]);
  useEffect(() => list.current.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' }), [at]);
  const { hits = null, problem } = answer.text === text ? answer : {};
  const groups = groupsOf(text, hits, pages);
  const items = groups.flatMap(([, , some]) => some);
  const status = problem
    ? problem.message
    : hits
      ? Object.keys(KINDS).some((kind) => hits[kind].length)
        ? ''
        : 'Nothing is called so.'
      : text && (mayOpen('/jobs') ? 'Searching…' : 'This key finds jobs by their ids.');
  const choose = (item) => {
    close();
    item?.go();
  };
  const onInput = (event) => {
    setText(event.target.value.trim());
    setAt(0); // an effect may run after the next key, and undo its step
  };
  const onKey = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: SHOWN, PageUp: -SHOWN }[event.key];
    if (step) setAt((((at + step) % items.length) + items.length) % items.length || 0);
    else if (event.key === 'Enter') choose(items[at]);
    else return;
    event.preventDefault();
  };
  const option = (item) => {
    const index = items.indexOf(item);
    return html`<div role="option" id=${`palette-${index}`} class="palette-option" aria-selected=${String(index === at)}
      onMouseMove=${() => setAt(index)} onClick=${() => choose(item)}>
      <span>${item.text}</span>${item.key ? html`<kbd>${item.key}</kbd>` : null}</div>`;
  };
  return html`<input type="text" role="combobox" aria-label="Search" aria-expanded="true" aria-controls="palette-list" autofocus
      aria-autocomplete="list" autocomplete="off" spellcheck=${false} aria-activedescendant=${items.length ? `palette-${at}` : undefined}
      placeholder="Job id, queue, worker, tag, … or customer.id:acme slower:30s"
      onInput=${onInput} onKeyDown=${onKey} />
    <p class="muted palette-told" role="status">${status}</p>
    <div id="palette-list" role="listbox" aria-label="Found" class="palette-list" ref=${list}>${groups.map(
      ([title, note, some], i) => html`<div role="group" aria-labelledby=${`palette-group-${i}`}>
        <div class="palette-title" id=${`palette-group-${i}`}>${title}${note ? html`<span class="muted"> · ${note}</span>` : null}</div>
        ${some.map(option)}</div>`,
    )}</div>`;
}

/** `pages`: those in the bar. */
export const openPalette = (pages) =>
  open('Search', ({ close }) => html`<${Palette} close=${close} pages=${pages} />`, { kind: 'palette' });
