// Who uses this page. The browser has a cookie that this code cannot read.
import { api } from './api.js';
import { field } from './components/field.js';
import { button, fill, h } from './dom.js';
import { setTitle, showSystem } from './frame.js';
import { setRoles } from './rights.js';

const RENEW_MS = 60_000;
let who = null;

/** Whether they may be here; asks who it is. */
export async function isKnown() {
  try {
    who = await api.get('/session');
    setRoles(who.roles);
    showSystem(who.master);
    return true;
  } catch (problem) {
    if (problem.status !== 401) throw problem;
    return false;
  }
}

/** A form that asks for a key, and calls `done` once it was a good one. */
export function logIn(main, done) {
  const key = field({ name: 'key', label: 'Key', type: 'password', required: true });
  const submit = async (event) => {
    event.preventDefault();
    try {
      await api.post('/session', { key: key.value().trim() });
      done();
    } catch (problem) {
      key.setProblem(problem.status === 401 ? 'No such key, or not any more.' : problem.message);
      key.focus();
    }
  };
  setTitle('Log in');
  fill(
    main,
    h(
      'form',
      { class: 'login', on: { submit } },
      h('h1', {}, 'Log in'),
      key.element,
      h('button', { type: 'submit', class: 'primary' }, 'Log in'),
      h('p', { class: 'muted' }, 'Keys are made by ', h('code', {}, 'jqmaster keys create NAME --role viewer')),
    ),
  );
  key.focus();
}

/** Shows who it is, with a way out; and keeps a session that is in use. */
export function showWho(place, leave) {
  place.hidden = !who?.asks;
  if (place.hidden) return;
  const out = async () => {
    await api.delete('/session');
    leave();
  };
  const name = h('span', { class: 'muted', title: who.roles.join(', ') }, who.name);
  fill(place, name, who.session && button('Log out', out, { class: 'quiet' }));
}

/** While somebody uses the page their session does not end. */
export function keepSession() {
  let renewed = Date.now();
  const renew = () => {
    if (!who?.session || Date.now() - renewed < RENEW_MS) return;
    renewed = Date.now();
    isKnown().catch(() => {}); // the next call says what is wrong
  };
  for (const type of ['pointerdown', 'keydown']) addEventListener(type, renew, { passive: true });
}
