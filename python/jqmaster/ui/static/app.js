// Shows the page that the address names.
import './theme.js';
import { ApiError, OFFLINE } from './api.js';
import { fill, h } from './dom.js';
import { pages } from './pages/index.js';
import { startPalette } from './palette.js';
import { may } from './rights.js';
import { BASE, carried, match, navigate, query, start } from './router.js';
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
// It follows the address' query by itself.
let isView = false;

function drawNav(page) {
  const current = page?.nav ? page.path : page?.under;
  fill(
    nav,
    pages
      .filter((one) => one.nav && (!one.needs || may(one.needs)))
      .map((one) =>
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
  const title = problem.status === 404 ? 'Not found' : 'This did not work';
  return fill(
    view,
    h('h1', {}, title),
    h('p', {}, problem.message || String(problem)),
    h('p', {}, h('a', { href: location.pathname + location.search }, 'Try again')),
  );
}

function leavePage() {
  shown += 1;
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
  if (isSame && isView) return;
  leavePage();
  isView = false;
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
    document.title = 'JQ';
    fill(main, fill(view, h('h1', {}, 'No such page'), h('p', {}, h('a', { href: `${BASE}/` }, 'Overview'))));
    return;
  }
  document.title = `${Object.values(found.params)[0] || found.page.title} · JQ`;
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
    const stop = module.Page
      ? mount(module.Page, found.params, view, problemOf)
      : await module.render(view, found.params, query());
    if (mine === shown) {
      cleanUp = stop;
      isView = Boolean(module.Page);
    } else stop?.();
  } catch (problem) {
    if (mine !== shown) return;
    fill(main, view);
    drawProblem(view, problem);
  }
}

menu.addEventListener('click', () => {
  const isOpen = nav.classList.toggle('is-open');
  menu.setAttribute('aria-expanded', String(isOpen));
});
addEventListener('jq:unknown', askWho);
startTheme();
startKeys();
startPalette();
keepSession();
start(change);
begin();
