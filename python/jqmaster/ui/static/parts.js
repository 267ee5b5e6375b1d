// Parts of pages: states, numbers with their names, bars, moments, workers' names, tables with pages and filters.
import { all, api, may, path, withQuery } from './api.js';
import { agoText, amount, count, cut, distance, jobs, moment, now, percent, untilText } from './format.js';
import { act, confirm, useSuggestions } from './forms.js';
import {
  BASE,
  carried,
  html,
  Link,
  mayOpen,
  navigate,
  query,
  useData,
  useEffect,
  useQuery,
  useRef,
  useState,
} from './view.js';

export const STATES = [
  'queued',
  'scheduled',
  'blocked',
  'running',
  'retrying',
  'done',
  'error',
  'cancelled',
  'skipped',
];
export const OPEN = STATES.slice(0, 5);
export const WAITING = ['queued', 'scheduled', 'blocked', 'retrying'];
export const ENDED = ['done', 'error', 'cancelled', 'skipped'];

/** A state in a word and a colour, never the colour alone: <Badge word="running" title="…" kind="…" />; kind: the colour. */
export const Badge = ({ word, title, kind = word }) =>
  html`<span class=${`badge is-${kind}`} title=${title}>${word}</span>`;

/** What is not known, did not happen, or is of no interest: never 0 in bold. */
export const none = (text = '–') => html`<span class="zero">${text}</span>`;
export const zero = (text, number) => (number ? text : none(text));

/** The top of a page: <Head title="Queues" actions=${…}>below the title</Head>. */
export const Head = ({ title, actions, children }) => html`<div class="head">
  <h1>${title}</h1>
  ${actions ? html`<div class="actions">${actions}</div>` : null}
  ${children}
</div>`;

/** A number with its name: <Tile name="Waiting" value="1,204" kind="queued" to="/jobs?status=queued">8/s enqueued</Tile>. */
export function Tile({ name, value, kind, to, children }) {
  const inner = html`<span class="tile-name">${kind ? html`<span class=${`dot is-${kind}`}></span>` : null}${name}</span>
    <div class="tile-value">${value}</div>
    <div class="tile-more">${children}</div>`;
  return to && mayOpen(to)
    ? html`<a class="tile" href=${BASE + carried(to)}>${inner}</a>`
    : html`<div class="tile">${inner}</div>`;
}

/** Nothing here, and how to begin: <Empty command="jqmaster enqueue …">No jobs yet.</Empty>. */
export const Empty = ({ command, children }) => html`<div class="empty">
  <p>${children}</p>
  ${command ? html`<p><code class="command">${command}</code></p>` : null}
</div>`;

/** Why there is nothing to show, in place of it. */
export const Problem = ({ problem, retry }) => html`<div class="empty is-problem" role="alert">
  <p>${problem.message || String(problem)}</p>
  <p><button type="button" onClick=${retry}>Try again</button></p>
</div>`;

/**
 * What useData answered: <Loaded of=${state}>${(data) => …}</Loaded>: the first look, a problem, or the view. What was
 * seen before stays when a later look fails: the frame says how old it is.
 */
export function Loaded({ of, children }) {
  if (of.data !== undefined) return children(of.data);
  // The page itself is not there, or not for this key: the frame says so in its place.
  if ([403, 404].includes(of.problem?.status)) throw of.problem;
  if (of.problem) return html`<${Problem} problem=${of.problem} retry=${of.reload} />`;
  return html`<p class="muted loading">Loading …</p>`;
}

/** <Button needs="operator" onClick=${…}>Pause</Button>; nothing for those who may not. */
export const Button = ({ needs, children, ...rest }) =>
  needs && !may(needs) ? null : html`<button type="button" ...${rest}>${children}</button>`;

/** Names with commas between, each a link: linked(['a'], (name) => path`/queue/${name}`). */
export const linked = (names, to) =>
  names.map((name, i) => html`${i ? ', ' : ''}<${Link} to=${to(name)}>${cut(name, 80)}<//>`);
export const toQueue = (name) => path`/queue/${name}`;
export const toLimit = (id) => path`/limit/${id}`;

/** Until when somebody put a limit, or a key of it, on hold. Without a rate nothing else closes it by time. */
export const onHold = (limit, key = limit) => key.hold_ms ?? (limit.rate ? undefined : key.opens_ms);

/** [[name, value], …] as a list; empty values are left out. */
export const Facts = ({ pairs }) =>
  html`<dl class="facts">${pairs
    .filter(([, value]) => value !== undefined && value !== null && value !== '' && value !== 0 && value !== false)
    .map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value}</dd>`)}</dl>`;

export const Section = ({ title, kind = '', children }) =>
  html`<section class=${`panel ${kind}`} aria-label=${title}><h2>${title}</h2>${children}</section>`;

// -- bars ---------------------------------------------------------------------------------------------

/** "3 of 10 running" with a bar, without a limit the number alone: <Meter value=${3} limit=${10} unit="running" />. */
export function Meter({ value, limit, unit = '' }) {
  if (!limit) return html`<span>${count(value)}</span>`;
  const text = `${amount(value)} of ${amount(limit)}${unit ? ` ${unit}` : ''}`;
  const share = Math.min(1, value / limit);
  const kind = share >= 1 ? 'is-full' : share >= 0.8 ? 'is-high' : '';
  return html`<span class="meter" role="meter" aria-valuenow=${value} aria-valuemin="0" aria-valuemax=${limit} aria-label=${text}>
    <span class="meter-track"><span class=${`meter-fill ${kind}`} style=${{ width: `${share * 100}%` }}></span></span>
    <span class="meter-text">${text}</span>
  </span>`;
}

/** A bar, and its text; null for one that says nothing. A worker may count to 1, to 100, or to what it likes. */
export function Progress({ job, isLong = false }) {
  const { progress, progress_message: message } = job;
  if (job.status !== 'running' || (progress === undefined && !message)) return null;
  const most = progress > 1 ? 100 : 1;
  const isShare = progress >= 0 && progress <= 100;
  const share = isShare ? percent(progress / most) : String(progress ?? '');
  const text = [share, message ? cut(message, isLong ? 300 : 60) : ''].filter(Boolean).join(' · ');
  return html`<div class="progress-box" title=${isLong ? undefined : text}>
    ${isShare ? html`<progress max=${most} value=${progress} aria-label="Progress"></progress>` : null}
    <span class=${isLong ? '' : 'muted'}>${isLong ? text : share}</span>
  </div>`;
}

// -- moments ------------------------------------------------------------------------------------------

const shown = new Set();
setInterval(() => {
  if (!document.hidden) for (const draw of shown) draw();
}, 1000);

/** A moment in words that are written anew each second; a dash where there is none. */
function Time({ ms, textOf }) {
  const [, setText] = useState('');
  useEffect(() => {
    const draw = () => setText(textOf(ms));
    shown.add(draw);
    return () => shown.delete(draw);
  }, [ms]);
  if (!ms) return none();
  return html`<time datetime=${new Date(ms).toISOString()} title=${moment(ms)} data-ms=${ms}>${textOf(ms)}</time>`;
}

/** <Ago ms=${job.created_ms} />: of a moment that has passed. */
export const Ago = ({ ms }) => html`<${Time} ms=${ms} textOf=${agoText} />`;

/** <Until ms=${job.due_ms} />: of one to come; never said to have passed, "any moment" at the most. */
export const Until = ({ ms }) => html`<${Time} ms=${ms} textOf=${untilText} />`;

/** For how long something has been so. */
const ageText = (ms) => distance(Math.max(0, now() - ms));
export const Age = ({ ms }) => html`<${Time} ms=${ms} textOf=${ageText} />`;

// -- many jobs --------------------------------------------------------------------------------------

/**
 * Asks, and takes running jobs from their workers, step by step. where: as of the API; of: whose they are, in words.
 * → how many; undefined when it was given up, or failed.
 */
export async function takeJobs(where, of) {
  const isSure = await confirm({
    title: `Take the jobs of ${of} from their workers?`,
    action: 'Take jobs',
    body: 'They wait again and no retry is spent. What they did so far may happen twice.',
  });
  const take = async () => {
    let [sum, cursor] = [0, ''];
    do {
      const answer = await api.post('/jobs/kick', { where, cursor, count: 1000 });
      sum += answer.changed;
      cursor = answer.cursor;
    } while (cursor);
    return sum;
  };
  return isSure ? act(take, (sum) => `${jobs(sum)} ${sum === 1 ? 'waits' : 'wait'} again.`) : undefined;
}

// -- workers ------------------------------------------------------------------------------------------

const KEPT_MS = 30000;

/** The answer of `load`, asked for once in a while. */
export function kept(load) {
  let at = 0;
  let answer = null;
  return () => {
    if (!answer || Date.now() - at > KEPT_MS) {
      at = Date.now();
      answer = load().catch((problem) => {
        answer = null;
        throw problem;
      });
    }
    return answer;
  };
}

/** The registered workers; asked for once in a while. */
export const registered = kept(async () => (await all('/workers')).entries);

/** Whether a worker said how many jobs it runs at once. */
export const hasSlots = ({ url, host, max_jobs }) => Boolean(url || host || max_jobs > 1);

export const isRegistered = (id) => /^w[0-9a-f]{14}(?:[0-9a-f]{2})?$/.test(id);

/** A link with its name, which comes when it is known: to its page; of one that is gone to the jobs that it ran. */
export function Worker({ id, size = 60 }) {
  const [name, setName] = useState('');
  useEffect(() => {
    let isOver = false;
    setName('');
    const named = (workers) => isOver || setName(workers.find((worker) => worker.id === id)?.name || '');
    if (isRegistered(id)) registered().then(named, console.debug);
    return () => {
      isOver = true;
    };
  }, [id]);
  const target = name ? path`/worker/${id}` : withQuery('/jobs', { worker: id });
  return html`<${Link} to=${target} title=${id}>${cut(name || id, size)}<//>`;
}

// -- tables -------------------------------------------------------------------------------------------

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
 * children: under the table, such as <Pager>
 */
export function Table(given) {
  const { columns, rows, rowKey, label, empty, sort, onSort, chosen, onChoose, isOld, children } = given;
  const anchor = useRef(null);
  const keys = rows.map(rowKey);
  const choose = (key, isChosen, isRange) => {
    const next = new Set(chosen);
    const from = isRange ? keys.indexOf(anchor.current) : -1;
    const here = keys.indexOf(key);
    const range = from < 0 ? [key] : keys.slice(Math.min(from, here), Math.max(from, here) + 1);
    anchor.current = key;
    for (const key of range) isChosen ? next.add(key) : next.delete(key);
    onChoose(next);
  };
  const on = chosen ? keys.filter((key) => chosen.has(key)).length : 0;
  const all = html`<th class="choose"><input type="checkbox" aria-label="Choose all of this page" disabled=${!keys.length || isOld}
    checked=${on > 0 && on === keys.length} indeterminate=${on > 0 && on < keys.length}
    onChange=${(event) => onChoose(new Set(event.target.checked ? [...chosen, ...keys] : [...chosen].filter((key) => !keys.includes(key))))} /></th>`;
  const chooser = (key) => html`<td class="choose"><input type="checkbox" class="chooser" aria-label=${`Choose ${key}`}
    checked=${chosen.has(key)} onClick=${(event) => choose(key, event.target.checked, event.shiftKey)} /></td>`;
  return html`<div class=${isOld ? 'table loading' : 'table'}>
    <div class="scroll" tabindex="0" role="region" aria-label=${label}>
      <table class="cards" aria-label=${label}>
        <thead><tr>${chosen ? all : null}
          ${columns.map((column) => html`<${Title} column=${column} sort=${sort} onSort=${onSort} />`)}</tr></thead>
        <tbody inert=${Boolean(isOld)}>${rows.map(
          (row, at) => html`<tr key=${keys[at]} data-key=${keys[at]} class=${chosen?.has(keys[at]) ? 'chosen' : ''}>
            ${chosen ? chooser(keys[at]) : null}
            ${columns.map(
              (column, i) => html`<td class=${classes(column)} data-label=${i ? column.title || '' : undefined}>
                <div class="cell">${column.cell(row)}</div></td>`,
            )}</tr>`,
        )}</tbody>
      </table>
    </div>
    ${rows.length ? null : empty}
    ${children}
  </div>`;
}

/**
 * A list by pages, its cursor in the address (`?at=`): load(cursor, signal) → {rows, cursor}; looked at again every `ms`.
 * Changes of `deps` (the filters) should come with setQuery({…, at: ''}). The browser's way back leads to the page before.
 * → useData's answer, and pager: {number, back, forth} with actions or null.
 */
export function usePages(load, { ms = 0, deps = [] } = {}) {
  const [{ at = '' }] = useQuery();
  const state = useData((signal) => load(at, signal), { ms, deps: [at, ...deps] });
  const go = (cursor) => () => navigate(withQuery(location.pathname.slice(BASE.length), { ...query(), at: cursor }));
  const next = state.data?.cursor;
  return {
    ...state,
    pager: { number: at ? 0 : 1, back: at ? go('') : null, forth: next && !state.isLoading ? go(next) : null },
  };
}

/** A page of rows that are all here, by the number of its first in the address (`?at=`): [rows, pager]. */
export function usePageOf(rows, size) {
  const [{ at = '' }, setQuery] = useQuery();
  const first = Number(at) || 0;
  const to = (next) => () => setQuery({ at: next || '' });
  const back = first ? to(Math.max(0, first - size)) : null;
  const forth = first + size < rows.length ? to(first + size) : null;
  return [rows.slice(first, first + size), { number: Math.floor(first / size) + 1, first, back, forth }];
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

// -- filters ------------------------------------------------------------------------------------------

const PAUSE_MS = 300;

function Words({ id, spec, value, isFirst, onChange }) {
  const [text, setText] = useState(value);
  const { list, ask, view } = useSuggestions(id, spec.suggest);
  const timer = useRef(0);
  const reported = useRef(value);
  // From elsewhere, such as a link or "Clear".
  useEffect(() => {
    if (value !== reported.current) setText(value);
    reported.current = value;
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const tell = (next) => {
    clearTimeout(timer.current);
    if (next.trim() === reported.current) return;
    reported.current = next.trim();
    onChange(reported.current);
  };
  const type = (event) => {
    const next = event.target.value;
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      tell(next);
      ask(next);
    }, PAUSE_MS);
  };
  return html`<input id=${id} name=${spec.name} data-filter=${isFirst ? '1' : undefined}
      type=${spec.type || 'text'} placeholder=${spec.placeholder || ''}
      autocomplete="off" spellcheck="false" list=${list} value=${text}
      onInput=${type} onChange=${(event) => tell(event.target.value)} onFocus=${() => ask(text)}
      onKeyDown=${(event) => event.key === 'Enter' && tell(event.target.value)} />${view}`;
}

/**
 * fields: [{name, label, type?: 'text'|'search', placeholder?, suggest?: async (text) → texts}]
 * Their values are those of useQuery(); a change of one leads to the first page (`at` goes).
 */
export function FilterBar({ fields, children }) {
  const [query, setQuery] = useQuery();
  const isAny = fields.some(({ name }) => query[name]);
  return html`<div class="filters" role="search">
    ${fields.map((spec, i) => {
      const id = `filter-${spec.name}`;
      return html`<div class="filter" key=${spec.name}><label for=${id}>${spec.label}</label>
        <${Words} id=${id} spec=${spec} value=${query[spec.name] || ''} isFirst=${i === 0}
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
