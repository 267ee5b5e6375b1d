// Shows the page that the address names.
import './theme.js';
import { ApiError, api, OFFLINE } from './api.js';
import { fill, h } from './dom.js';
import { setTitle, startRange } from './frame.js';
import { forget, startPulse } from './fresh.js';
import { inBar, pages } from './pages/index.js';
import { startPalette } from './palette.js';
import { BASE, carried, match, navigate, start } from './router.js';
import { isKnown, keepSession, logIn, showWho } from './session.js';
import { startKeys } from './shortcuts.js';
import { startTheme } from './theme.js';
import { Dom, html, mount } from './view.js';

const main = document.getElementById('main');
const nav = document.getElementById('nav');
const menu = document.getElementById('menu');
const user = document.getElementById('user');
let cleanUp = null;
let shown = 0;
let isBroken = false;

const SLOW_MS = 700;

function drawNav(page) {
  const current = page?.nav ? page.path : page?.under;
  fill(
    nav,
    inBar().map((one) =>
      h(
        'a',
        {
          href: BASE + carried(one.path),
          'aria-current': one.path === current ? 'page' : undefined,
        },
        one.title,
      ),
    ),
  );
  nav.classList.remove('is-open');
  menu.setAttribute('aria-expanded', 'false');
}

const problemOf = (problem) => html`<${Dom} make=${() => drawProblem(h('div', { class: 'view' }), problem)} />`;

function drawProblem(view, problem) {
  if (problem.name === 'AbortError') return view;
  if (!problem.code) console.error(problem);
  const isMissing = problem.status === 404;
  const text = problem.message || String(problem);
  return fill(
    view,
    h('h1', {}, isMissing ? 'Not found' : 'This did not work'),
    // Of an address it is plain which part of it is meant.
    h('p', {}, isMissing ? text.replace(`${problem.field}: `, '') : text),
    h('p', {}, h('a', { href: location.pathname + location.search }, 'Try again')),
  );
}

/** While a page takes long to come. */
const waiting = (title) =>
  h('p', { class: 'waiting muted', role: 'status' }, `${title}: waiting for the master to answer.`);

function leavePage() {
  shown += 1;
  isBroken = false;
  forget();
  try {
    cleanUp?.();
  } catch (problem) {
    console.error(problem);
  }
  cleanUp = null;
}

/** Nobody is known any more: asks for a key, and goes on where one was. */
function askWho() {
  if (main.querySelector('form.login')) return;
  leavePage();
  for (const dialog of document.querySelectorAll('dialog')) dialog.close();
  fill(nav);
  user.hidden = true;
  logIn(main, begin);
}

async function begin() {
  try {
    if (!(await isKnown())) return askWho();
  } catch {
    // Not for that: the page says what is wrong.
  }
  showWho(user, askWho);
  fill(main);
  return change();
}

async function change(isSame = false) {
  // A view follows the address' query by itself.
  if (isSame && cleanUp) return;
  leavePage();
  const mine = shown;
  for (const dialog of document.querySelectorAll('dialog')) dialog.close();
  const found = match(pages, location.pathname);
  if (found?.page.to) {
    navigate(found.page.to(...Object.values(found.params)) + location.search, { replace: true });
    return;
  }
  drawNav(found?.page);
  // A view of its own for each page: what arrives late for the one before cannot show up here.
  const view = h('div', { class: 'view' });
  if (!found) {
    setTitle('No such page');
    fill(main, fill(view, h('h1', {}, 'No such page'), h('p', {}, h('a', { href: `${BASE}/` }, 'Overview'))));
    return;
  }
  setTitle(Object.values(found.params)[0] || found.page.title);
  const slow = setTimeout(() => {
    // Of the page before nothing may stand under the name of this one.
    if (mine === shown && !view.hasChildNodes()) fill(main, waiting(found.page.title), view);
  }, SLOW_MS);
  try {
    const module = await found.page.load().catch(() => {
      throw new ApiError(0, 'OFFLINE', OFFLINE);
    });
    if (mine !== shown) return;
    const isFirst = !main.querySelector('.view');
    fill(main, view);
    if (!isFirst) {
      scrollTo(0, 0);
      main.focus({ preventScroll: true });
    }
    cleanUp = mount(module.Page, found.params, view, problemOf);
  } catch (problem) {
    if (mine !== shown) return;
    fill(main, view);
    drawProblem(view, problem);
    isBroken = problem.name !== 'AbortError' && [0, 502, 503, 504].includes(problem.status);
  } finally {
    clearTimeout(slow);
    if (mine === shown) main.querySelector('.waiting')?.remove();
  }
}

menu.addEventListener('click', () => {
  const isOpen = nav.classList.toggle('is-open');
  menu.setAttribute('aria-expanded', String(isOpen));
});
addEventListener('jq:unknown', askWho);
// What could not be shown while nobody answered is shown then.
addEventListener('jq:back', () => isBroken && change());
startPulse((signal) => api.get('/health', {}, { signal }));
startTheme();
startKeys();
startPalette();
startRange();
keepSession();
start(change);
begin();
