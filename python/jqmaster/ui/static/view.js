// Views: Preact with htm, held to what this page may do, and the hooks by which pages get what they show.
import { stringify } from './api.js';
import { SAFE_URL } from './dom.js';
import { now } from './format.js';
import { every, follow } from './live.js';
import { BASE, carried, onQuery, query, setQuery } from './router.js';
import { Component, h, htm, options, render, useEffect, useRef, useState } from './vendor/preact.js';

export {
  Component,
  Fragment,
  h,
  render,
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useReducer,
  useRef,
  useState,
} from './vendor/preact.js';

export const html = htm.bind(h);

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

/** A link to a page, within the time range: <Link to=${path`/queue/${name}`}>…</Link>. */
export const Link = ({ to, children, ...rest }) => html`<a href=${BASE + carried(to)} ...${rest}>${children}</a>`;

/** An element that was made without Preact; made anew when one of `deps` changes. */
export function Dom({ make, deps = [], tag = 'div', ...rest }) {
  const place = useRef(null);
  useEffect(() => place.current.replaceChildren(...[make()].flat().filter(Boolean)), deps);
  return h(tag, { ref: place, ...rest });
}

/**
 * What `load(signal)` answers: asked now, again when one of `deps` changes, and every `ms`, while the tab is seen.
 * → {data, problem, isLoading, reload() → whether there was an answer}. Data of before stays until there is other.
 */
export function useData(load, { ms = 0, deps = [] } = {}) {
  const [state, setState] = useState({ data: undefined, problem: null, isLoading: true });
  const latest = useRef(load);
  latest.current = load;
  const look = useRef(async () => false);
  useEffect(() => {
    const life = new AbortController();
    look.current = async () => {
      try {
        const data = await latest.current(life.signal);
        if (!life.signal.aborted) setState({ data, problem: null, isLoading: false });
        return true;
      } catch (problem) {
        if (life.signal.aborted) return false;
        if (!problem.code) console.error(problem);
        setState((old) => ({ data: old.data, problem, isLoading: false }));
        return problem.status >= 400 && problem.status < 500; // the page shows why, in place of figures
      }
    };
    setState((old) => (old.isLoading ? old : { ...old, isLoading: true }));
    look.current();
    const stop = ms ? every(ms, () => look.current()) : () => {};
    return () => {
      life.abort();
      stop();
    };
  }, [ms, ...deps]);
  return { ...state, reload: () => look.current() };
}

/** The newest of a stream of server-sent events, undefined before the first. `ms`: so often they come at least. */
export function useStream(target, { ms = 0 } = {}) {
  const [data, setData] = useState(undefined);
  useEffect(() => follow(target, setData, { ms }), [target, ms]);
  return data;
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
  const [name, span] = RANGES.find(([one]) => one === range) || RANGES.find(([one]) => one === USUAL);
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
  render(html`<${Boundary} fallback=${fallback}><${Page} params=${params} /><//>`, place);
  return () => render(null, place);
}
