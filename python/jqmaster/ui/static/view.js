// What pages are made of. Where one is: the path names the page, the query its filters; both survive a reload and can be
// sent to others. Views: Preact with htm, held to what this page may do, and the hooks by which they get what they show.
import { every, nameOf, ROOT, stringify } from './api.js';
import { now } from './format.js';
import { Component, h, htm, options, render, useEffect, useRef, useState } from './vendor/libraries.js';

export { render, useEffect, useRef, useState } from './vendor/libraries.js';

export const BASE = `${ROOT}/ui`;
let onChange = () => {};
let opens = () => true;
const watching = new Set();
// The time range goes along from page to page.
const CARRIED = ['range', 'from', 'to'];

/** The path with what goes along from page to page. */
export function carried(target) {
  const here = query();
  const [path, text] = target.split('?');
  const next = new URLSearchParams(text);
  if (!CARRIED.some((name) => next.has(name))) for (const name of CARRIED) if (here[name]) next.set(name, here[name]);
  const whole = next.toString();
  return whole ? `${path}?${whole}` : path;
}

/** Calls `action` whenever the query changes while the page stays → stop. */
export function onQuery(action) {
  watching.add(action);
  return () => watching.delete(action);
}

const tellQuery = () => {
  for (const action of [...watching]) action();
};

/** Goes to a page. */
export function navigate(target, { replace = false } = {}) {
  history[replace ? 'replaceState' : 'pushState'](null, '', BASE + carried(target));
  go();
}

/** The filters in force. */
export const query = () => Object.fromEntries(new URLSearchParams(location.search));

/** Changes filters (empty ones go) without leaving the page; the page itself shows what changes. */
export function setQuery(changes) {
  const next = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === '' || value === null || value === undefined || value === false) next.delete(name);
    else next.set(name, value === true ? '1' : String(value));
  }
  const text = next.toString();
  history.replaceState(history.state, '', location.pathname + (text ? `?${text}` : ''));
  tellQuery();
}

/** Finds the page of a location. Pages have paths such as `/job/:id`. */
export function match(pages, pathname) {
  const parts = pathname.slice(BASE.length).replace(/\/$/, '').split('/').slice(1);
  for (const page of pages) {
    const wanted = page.path === '/' ? [] : page.path.split('/').slice(1);
    if (wanted.length !== parts.length) continue;
    if (!wanted.every((want, index) => want.startsWith(':') || want === parts[index])) continue;
    try {
      const params = wanted.flatMap((want, index) =>
        want.startsWith(':') ? [[want.slice(1), nameOf(parts[index])]] : [],
      );
      return { page, params: Object.fromEntries(params) };
    } catch {
      return null; // not a valid escape
    }
  }
  return null;
}

let shown = '';

function go() {
  const isSame = shown === location.pathname;
  shown = location.pathname;
  onChange(isSame);
  tellQuery();
}

/** Calls `change(isSame)` whenever the address changes; isSame: in nothing but its query. mayOpen(path): whether who looks may see that page. */
export function start(change, mayOpen) {
  onChange = change;
  opens = mayOpen;
  shown = location.pathname;
  addEventListener('popstate', go);
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
      return;
    const anchor = event.target.closest('a[href]');
    if (!anchor || anchor.target || anchor.origin !== location.origin || !`${anchor.pathname}/`.startsWith(`${BASE}/`))
      return;
    if (anchor.hash && anchor.pathname === location.pathname) return;
    event.preventDefault();
    navigate(anchor.pathname.slice(BASE.length) + anchor.search);
  });
}

let title = '';
let system = '';

/** The document's title: the page, and of which system. */
export function setTitle(page, ofSystem = system) {
  title = page ?? title;
  system = ofSystem;
  document.title = [title, system ? `JQ ${system}` : 'JQ'].filter(Boolean).join(' · ');
}

// -- views --------------------------------------------------------------------------------------------

export const html = htm.bind(h);

// Links lead nowhere but to this server: a job's text must not become a javascript: address.
const SAFE_URL = /^(\/(?!\/)|#|\?)/;

// What comes from outside is only ever a text node or an attribute's value that cannot run.
const before = options.vnode;
options.vnode = (vnode) => {
  if (typeof vnode.type === 'string') {
    for (const [name, value] of Object.entries(vnode.props)) {
      if (/^(srcdoc|innerhtml|outerhtml|dangerouslysetinnerhtml)$/i.test(name))
        throw new Error(`not to be set: ${name}`);
      if (/^on/i.test(name) && value && typeof value !== 'function') throw new Error(`not a listener: ${name}`);
      if ((name === 'href' || name === 'src') && value && !SAFE_URL.test(String(value)))
        throw new Error(`not a path: ${value}`);
    }
  }
  before?.(vnode);
};

/** What a page cannot go on with is told in its place: <Boundary fallback=${(problem) => …}>. */
class Boundary extends Component {
  static getDerivedStateFromError(problem) {
    return { problem };
  }

  componentDidCatch(problem) {
    if (!problem.code) console.error(problem);
  }

  render({ fallback, children }, { problem }) {
    return problem ? fallback(problem) : children;
  }
}

/** Lines of a name end behind its parts, not inside words. */
export const parted = (name) =>
  name.split(/(?<=[._\-/:@])(?=\w)/).flatMap((part, i) => (i ? [html`<wbr />`, part] : [part]));

/** Whether who looks may see a page. */
export const mayOpen = (to) => opens(BASE + to.split('?')[0]);

/** A link to a page, within the time range: <Link to=${path`/queue/${name}`}>…</Link>; its text alone where it would be refused. */
export function Link({ to, children, ...rest }) {
  const text = typeof children === 'string' ? parted(children) : children;
  return mayOpen(to)
    ? html`<a href=${BASE + carried(to)} ...${rest}>${text}</a>`
    : html`<span class=${rest.class}>${text}</span>`;
}

/** A link that is nothing without its page: gone where that would be refused. */
export const Way = (given) => (mayOpen(given.to) ? html`<${Link} ...${given} />` : null);

// A page is seen once its first looks have been answered, or have taken long: so nothing in it moves as they come.
const SEEN_MS = 1000;
const NEXT_MS = 60; // in which a part that has come begins looks of its own
let looks = 0;
let see = () => {};

/** A first look begins → what to call at its end. */
function beginLook() {
  let isOver = false;
  looks += 1;
  return () => {
    if (isOver) return;
    isOver = true;
    looks -= 1;
    if (!looks) setTimeout(() => looks || see(), NEXT_MS);
  };
}

/**
 * What `load(signal)` answers: asked now, again when one of `deps` changes, and every `ms`, while the tab is seen;
 * less often where it says that it took many `requests`, so that a page of many queues is no greater load.
 * → {data, problem, isLoading, reload() → whether there was an answer}. Data of before stays until there is other.
 */
export function useData(load, { ms = 0, deps = [] } = {}) {
  const [state, setState] = useState({ data: undefined, problem: null, isLoading: true });
  const latest = useRef(load);
  latest.current = load;
  const requests = useRef(1);
  requests.current = state.data?.requests ?? 1;
  const look = useRef(async () => false);
  useEffect(() => {
    const life = new AbortController();
    let begun = 0;
    let ended = 0;
    look.current = async () => {
      begun += 1;
      const mine = begun;
      try {
        const data = await latest.current(life.signal);
        // One that began later may have been faster: what it found is not put back.
        if (!life.signal.aborted && mine > ended) setState({ data, problem: null, isLoading: false });
        ended = Math.max(ended, mine);
        return true;
      } catch (problem) {
        if (life.signal.aborted) return false;
        if (!problem.code) console.error(problem);
        setState((old) => ({ data: old.data, problem, isLoading: false }));
        return problem.status >= 400 && problem.status < 500; // the page shows why, in place of figures
      }
    };
    setState((old) => (old.isLoading ? old : { ...old, isLoading: true }));
    const endLook = beginLook();
    look.current().finally(endLook);
    const period = () => (ms * (1 + requests.current)) / 2;
    const stop = ms ? every(period, () => look.current()) : () => {};
    return () => {
      endLook();
      life.abort();
      stop();
    };
  }, [ms, ...deps]);
  return { ...state, reload: () => look.current() };
}

/** The address' query and how to change it without another page: [query, setQuery({name: value})]. */
export function useQuery() {
  const [, turn] = useState(0);
  useEffect(() => onQuery(() => turn((count) => count + 1)), []);
  return [query(), setQuery];
}

/** Texts that are alike as long as the value is: for `deps` of objects. */
export const same = (value) => stringify(value);

const MINUTE = 60000;
export const RANGES = [
  ['15m', 15 * MINUTE, '15 minutes'],
  ['1h', 60 * MINUTE, '1 hour'],
  ['6h', 360 * MINUTE, '6 hours'],
  ['1d', 1440 * MINUTE, '1 day'],
  ['7d', 10080 * MINUTE, '7 days'],
];
const USUAL = '1h';

/** Statistics of the last hours are by the minute, of days by the hour, of what is longer by the day. */
const stepOf = (span) => (span <= 360 * MINUTE ? 'minute' : span <= 10080 * MINUTE ? 'hour' : 'day');
export const STEP_MS = { minute: MINUTE, hour: 60 * MINUTE, day: 1440 * MINUTE };

/**
 * The time range of all pages, as the address says: `?range=1h`, or `?from=…&to=…` in ms.
 * → {name, from_ms, to_ms, by: 'minute'|'hour'|'day', isLive}. A live one begins at a whole step and moves on with the clock.
 */
export function rangeOf({ range, from, to }) {
  if (Number(from) > 0 && Number(to) > Number(from)) {
    const by = stepOf(Number(to) - Number(from));
    return { name: '', from_ms: Number(from), to_ms: Number(to), by, isLive: false };
  }
  const [name, span] = RANGES.find(([key]) => key === range) || RANGES.find(([key]) => key === USUAL);
  const by = stepOf(span);
  const step = STEP_MS[by];
  return { name, from_ms: Math.floor((now() - span) / step) * step, to_ms: now(), by, isLive: true };
}

export const useRange = () => rangeOf(useQuery()[0]);

/** setRange({range: '6h'}) or setRange({from, to}). */
export const setRange = ({ range = '', from = '', to = '' }) =>
  setQuery({ range: range === USUAL ? '' : range, from: from && Math.round(from), to: to && Math.round(to) });

/** Shows a page's view in an element → what ends it. */
export function mount(Page, params, place, fallback) {
  place.classList.add('is-coming');
  see = () => {
    if (!place.classList.contains('is-coming')) return;
    place.classList.remove('is-coming');
    place.querySelector('[autofocus]')?.focus();
  };
  setTimeout(see, SEEN_MS);
  render(html`<${Boundary} fallback=${fallback}><${Page} params=${params} /><//>`, place);
  setTimeout(() => looks || see(), NEXT_MS);
  return () => render(null, place);
}
