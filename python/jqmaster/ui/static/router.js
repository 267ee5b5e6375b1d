// Where one is: the path names the page, the query its filters. Both survive a reload and can be sent to others.
import { nameOf, ROOT } from './api.js';
import { h } from './dom.js';

export const BASE = `${ROOT}/ui`;
let onChange = () => {};
const watching = new Set();
// The time range goes along from page to page.
const CARRIED = ['range', 'from', 'to'];

/** Link to a page: link('/queue/a%2Fb', 'a/b'). The path is made with path`` of api.js. */
export function link(target, ...children) {
  return h('a', { href: BASE + target }, ...children);
}

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

/** A path with filters: withQuery('/jobs', {queue: 'mail'}). */
export function withQuery(target, filters) {
  const pairs = Object.entries(filters).filter(([, value]) => value !== '' && value !== null && value !== undefined);
  return pairs.length ? `${target}?${new URLSearchParams(pairs)}` : target;
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

/** Calls `change(isSame)` whenever the address changes; isSame: in nothing but its query. */
export function start(change) {
  onChange = change;
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
