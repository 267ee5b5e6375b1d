// The frame around pages: shows the one that the address names, who looks at which system, the time range of all pages,
// light or dark, and the keyboard.
import { ApiError, api, boundTo, forget, may, setWho, startPulse } from './api.js';
import { moment } from './format.js';
import { isTyping, show, useForm } from './forms.js';
import {
  html,
  Link,
  match,
  mount,
  navigate,
  onQuery,
  query,
  RANGES,
  rangeOf,
  render,
  setRange,
  setTitle,
  start,
} from './view.js';

const element = (id) => document.getElementById(id);
const [main, nav, menu, user, place] = ['main', 'nav', 'menu', 'user', 'system'].map(element);
const SLOW_MS = 700;
let cleanUp = null;
let shown = 0;
let isBroken = false;

// -- the pages: path (segments with a colon are names), title, load(): its view ------------------------
// Those with a `key` are in the bar at the top; `g` and it goes there. A page's code is loaded when it is first shown.
// `needs`: one of these roles; `ranged`: it shows a time range; `all`: of a key that is bound to queues it would show nothing.

const page = (address, title, load, more = {}) => ({ path: address, title, load, needs: ['viewer'], ...more });
const queues = () => import('./queues.js');
const limits = () => import('./limits.js');
const schedules = () => import('./schedules.js');
const workers = () => import('./workers.js');
const admin = () => import('./admin.js');
const ALL = { all: true };

const pages = [
  page('/', 'Overview', async () => (await import('./overview.js')).Overview, { key: 'o', ranged: true }),
  page('/changes', 'Changes', async () => (await import('./changes.js')).Changes, { under: '/', ...ALL }),
  page('/queues', 'Queues', async () => (await queues()).Queues, { key: 'q' }),
  page('/queue/:name', 'Queue', async () => (await queues()).Queue, { under: '/queues', ranged: true }),
  page('/jobs', 'Jobs', async () => (await import('./jobs.js')).Jobs, { key: 'j' }),
  page('/job/:id', 'Job', async () => (await import('./job.js')).Job, { under: '/jobs', needs: ['viewer', 'pusher'] }),
  page('/failures', 'Failures', async () => (await import('./failures.js')).Failures, {
    key: 'f',
    ranged: true,
    ...ALL,
  }),
  page('/limits', 'Limits', async () => (await limits()).Limits, { key: 'l', ...ALL }),
  page('/limit/:id', 'Limit', async () => (await limits()).Limit, { under: '/limits', ...ALL }),
  page('/schedules', 'Schedules', async () => (await schedules()).Schedules, { key: 's', ...ALL }),
  page('/schedule/:id', 'Schedule', async () => (await schedules()).Schedule, { under: '/schedules', ...ALL }),
  page('/workers', 'Workers', async () => (await workers()).Workers, { key: 'w', ...ALL }),
  page('/worker/:name', 'Worker', async () => (await workers()).Worker, { under: '/workers', ...ALL }),
  page('/enqueue', 'Enqueue', async () => (await import('./enqueue.js')).Enqueue, { key: 'e', needs: ['pusher'] }),
  page('/trail', 'Audit log', async () => (await admin()).Trail, { key: 't', needs: ['operator'], ...ALL }),
  page('/keys', 'Keys', async () => (await admin()).Keys, { key: 'k', needs: ['admin'], ...ALL }),
];

/** Whether a page shows something to who looks. */
const isFor = (page) => may(...page.needs) && !(page.all && boundTo());

/** Those in the bar that are for who looks, in order. */
const inBar = () => pages.filter((page) => page.key && isFor(page));

// -- light or dark: as the system is, unless the reader chose -----------------------------------------

const THEMES = { auto: 'Theme: auto', light: 'Theme: light', dark: 'Theme: dark' };

function setTheme(theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  for (const name of ['title', 'ariaLabel']) element('theme')[name] = THEMES[theme];
}

function startTheme() {
  let theme = 'auto';
  try {
    theme = localStorage.getItem('jq-theme');
  } catch {
    // It may not be kept: then it holds for this page.
  }
  theme = theme in THEMES ? theme : 'auto';
  setTheme(theme);
  element('theme').addEventListener('click', () => {
    theme = { auto: 'light', light: 'dark', dark: 'auto' }[theme];
    setTheme(theme);
    try {
      localStorage.setItem('jq-theme', theme);
    } catch {
      // As above.
    }
  });
}

// -- who looks, and at which system -------------------------------------------------------------------

const RENEW_MS = 60_000;
let who = null;

/** Whether they may be here; asks who it is. The browser has a cookie that this code cannot read. */
async function isKnown() {
  try {
    who = await api.get('/session');
    setWho(who);
    showSystem(who.master);
    return true;
  } catch (problem) {
    if (problem.status !== 401) throw problem;
    return false;
  }
}

function showSystem({ environment, color, namespace, redis, version }) {
  if (environment) document.documentElement.dataset.environment = color;
  const facts = [
    ['Namespace', namespace],
    ['Redis', redis],
    ['JQ', `version ${version}`],
  ];
  const more = () =>
    show(
      environment || 'This system',
      html`<dl class="facts">${facts.map(([name, text]) => html`<dt>${name}</dt><dd>${text}</dd>`)}</dl>`,
    );
  const texts = [namespace, `Redis ${redis}`, `JQ ${version}`];
  render(
    html`${environment ? html`<b class="environment">${environment}</b>` : null}
      <button type="button" class="quiet facts-of" title=${texts.join('\n')} onClick=${more}
        aria-label=${`${texts.join(', ')}: more of this system`}>${texts.map(
          (text, i) => html`<span class=${i ? 'fact hide-middle' : 'fact'}>${text}</span>`,
        )}</button>`,
    place,
  );
  place.hidden = false;
  setTitle(null, environment || (namespace === '{jq}' ? '' : namespace));
}

function LogIn() {
  const key = { name: 'key', label: 'Key', type: 'password', required: true };
  const form = useForm([key], async (values) => {
    await api.post('/session', { key: values.key.trim() }).catch((problem) => {
      if (problem.status !== 401) throw problem;
      throw Object.assign(problem, { field: 'key', message: 'This key is unknown, or was revoked.' });
    });
    begin();
  });
  return html`<form class="login" novalidate ref=${form.place} onSubmit=${form.send}>
    <h1>Log in</h1>${form.view(key, true)}${form.problem}<button type="submit" class="primary">Log in</button>
    <p class="muted">Keys are made by <code>jqmaster keys create NAME --role viewer</code></p></form>`;
}

/** Nobody is known any more: asks for a key, and goes on where one was. */
function askWho() {
  if (main.querySelector('form.login')) return;
  leavePage();
  render(null, nav);
  user.hidden = true;
  setTitle('Log in');
  cleanUp = mount(LogIn, {}, newView(), problemOf);
}

/** Who it is, with a way out. */
function showWho() {
  user.hidden = !who?.asks;
  if (user.hidden) return;
  const leave = async () => {
    await api.delete('/session');
    askWho();
  };
  const out = who.session && html`<button type="button" class="quiet" onClick=${leave}>Log out</button>`;
  render(html`<span class="muted" title=${who.roles.join(', ')}>${who.name}</span>${out}`, user);
}

/** While somebody uses the page their session does not end. */
function keepSession() {
  let renewed = Date.now();
  const renew = () => {
    if (!who?.session || Date.now() - renewed < RENEW_MS) return;
    renewed = Date.now();
    isKnown().catch(() => {}); // the next call says what is wrong
  };
  for (const type of ['pointerdown', 'keydown']) addEventListener(type, renew, { passive: true });
}

// -- the page -----------------------------------------------------------------------------------------

function drawNav(page) {
  const current = page?.key ? page.path : page?.under;
  const links = inBar().map(
    (page) =>
      html`<${Link} to=${page.path} aria-current=${page.path === current ? 'page' : undefined}>${page.title}<//>`,
  );
  render(links, nav);
  nav.classList.remove('is-open');
  menu.setAttribute('aria-expanded', 'false');
}

/** In place of a page that shows nothing: why, and where to go from there. */
function NoPage({ title, text, again }) {
  const { page } = match(pages, location.pathname) || {};
  const next = inBar().find(({ path }) => path === page?.under) || inBar()[0];
  const links = [
    again && html`<a href=${location.pathname + location.search} target="_self">Try again</a>`,
    next && html`<${Link} to=${next.path}>${next.title}<//>`,
  ].filter(Boolean);
  return html`<h1>${title}</h1><p>${text}</p><p>${links.map((link, i) => [i ? ' · ' : '', link])}</p>`;
}

function problemOf(problem) {
  if (problem.name === 'AbortError') return null;
  if (!problem.code) console.error(problem);
  const message = problem.message || String(problem);
  // Of an address it is plain which part of it is meant. All is loaded anew: it may be of another version.
  const text = problem.status === 404 ? message.replace(`${problem.field}: `, '') : message;
  const title = { 403: 'Not for this key', 404: 'Not found' }[problem.status] ?? 'This did not work';
  return html`<${NoPage} title=${title} text=${text[0].toUpperCase() + text.slice(1)} again />`;
}

/** A view of its own for each page: what arrives late for the one before cannot show up here. */
function newView() {
  const view = document.createElement('div');
  view.className = 'view';
  main.replaceChildren(view);
  return view;
}

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
  for (const dialog of document.querySelectorAll('dialog')) dialog.close();
}

async function begin() {
  match(pages, location.pathname)
    ?.page.load?.()
    .catch(() => {}); // while it is asked who looks
  try {
    if (!(await isKnown())) return askWho();
  } catch {
    // Not for that: the page says what is wrong.
  }
  showWho();
  main.replaceChildren();
  return change();
}

function say(title, text) {
  setTitle(title);
  render(html`<${NoPage} title=${title} text=${text} />`, newView());
}

async function change(isSame = false) {
  // A view follows the address' query by itself.
  if (isSame && cleanUp) return;
  leavePage();
  const mine = shown;
  const { page, params } = match(pages, location.pathname) || {};
  const [first] = inBar();
  // Who may not see the overview begins with what they may.
  if (page?.path === '/' && !isFor(page) && first) return navigate(first.path, { replace: true });
  drawNav(page);
  element('range').classList.toggle('is-idle', !page?.ranged || !isFor(page));
  if (!page) return say('No such page', 'Nothing is at this address.');
  if (!isFor(page))
    return say(
      page.title,
      `The key ${who.name} does not show this page: it has the role${who.roles.length > 1 ? 's' : ''} ${who.roles.join(', ')}${who.queues ? ` and is bound to the queues ${who.queues.join(', ')}` : ''}.${may(...page.needs) ? '' : ` It takes the role ${page.needs.join(' or ')}.`}`,
    );
  setTitle(Object.values(params)[0] || page.title);
  const isFirst = !main.querySelector('.view');
  const slow = setTimeout(() => {
    // Of the page before nothing may stand under the name of this one.
    if (mine === shown)
      render(
        html`<p class="waiting muted" role="status">${page.title}: waiting for the server to answer.</p>`,
        newView(),
      );
  }, SLOW_MS);
  const fallback = (problem) => {
    isBroken = problem.name !== 'AbortError' && [0, 502, 503, 504].includes(problem.status);
    return problemOf(problem);
  };
  try {
    const Page = await page.load().catch(() => {
      throw new ApiError(0, 'OFFLINE', 'The server cannot be reached, or is of another version now.');
    });
    if (mine !== shown) return;
    const view = newView();
    if (!isFirst) {
      scrollTo(0, 0);
      main.focus({ preventScroll: true });
    }
    cleanUp = mount(Page, params, view, problemOf);
  } catch (problem) {
    if (mine === shown) render(fallback(problem), newView());
  } finally {
    clearTimeout(slow);
  }
}

// -- the time range of all pages, and the keyboard ----------------------------------------------------

/** What a chart was brushed to is one of its choices while it holds. */
function startRange() {
  const choice = element('range');
  const draw = () => {
    const { name, from_ms, to_ms, isLive } = rangeOf(query());
    const own = isLive ? [] : [['', `${moment(from_ms)} – ${moment(to_ms)}`]];
    const all = [...own, ...RANGES.map(([key, , title]) => [key, `Last ${title}`])];
    render(
      all.map(([key, text]) => html`<option value=${key} selected=${key === name}>${text}</option>`),
      choice,
    );
  };
  choice.addEventListener('change', () => choice.value && setRange({ range: choice.value }));
  onQuery(draw);
  draw();
}

function help() {
  if (document.querySelector('dialog')) return;
  const keys = [
    ['/', 'to the filter'],
    ['← →', 'in a chart: its values'],
    ['Esc', 'close a dialog, leave a field'],
    ...inBar().map((page) => [`g ${page.key}`, page.title]),
    ['?', 'this help'],
  ];
  const line = ([key, text]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${text}</dd></div>`;
  show('Keyboard', html`<dl class="keys">${keys.map(line)}</dl>`);
}

/** The palette's code is loaded when it is first asked for. */
async function search() {
  if (!document.querySelector('dialog[open], form.login')) (await import('./palette.js')).openPalette(inBar());
}

function startKeys() {
  let isGoing = 0;
  element('help').addEventListener('click', help);
  element('search').addEventListener('click', search);
  document.addEventListener('keydown', (event) => {
    const { key, target } = event;
    const isCall = (event.ctrlKey || event.metaKey) && !event.altKey && key.toLowerCase() === 'k';
    if (!isCall && (event.ctrlKey || event.metaKey || event.altKey)) return;
    if (!isCall && isTyping(target)) {
      if (key === 'Escape' && !target.closest('dialog')) target.blur();
      return;
    }
    if (document.querySelector('dialog[open]')) return;
    const page = Date.now() - isGoing < 1500 && inBar().find((entry) => entry.key === key);
    isGoing = key === 'g' ? Date.now() : 0;
    const filter = document.querySelector('#main [data-filter]');
    if (isCall) search();
    else if (page) navigate(page.path);
    else if (key === '/') filter ? filter.focus() : search();
    else if (key === '?') help();
    else return;
    event.preventDefault();
  });
}

menu.addEventListener('click', () => {
  const isOpen = nav.classList.toggle('is-open');
  menu.setAttribute('aria-expanded', String(isOpen));
});
addEventListener('jq:unknown', askWho);
// What could not be shown while nobody answered is shown then.
addEventListener('jq:back', () => isBroken && change());
startTheme();
startPulse();
startKeys();
startRange();
keepSession();
start(change, (pathname) => {
  const target = match(pages, pathname);
  return !target || isFor(target.page);
});
begin();
