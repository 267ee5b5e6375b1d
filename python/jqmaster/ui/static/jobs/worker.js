// Who ran a job: a registered worker by its name, any other as it calls itself.
import { all, path } from '../api.js';
import { h } from '../dom.js';
import { cut } from '../format.js';
import { pages } from '../pages/index.js';
import { BASE, withQuery } from '../router.js';

const KEPT_MS = 30000;
let asked = null;
let at = 0;

const hasPage = pages.some((page) => page.path === '/worker/:id');

/** Names by id, asked for once in a while; what could not be asked for is not known. */
function names() {
  if (!asked || Date.now() - at > KEPT_MS) {
    at = Date.now();
    asked = all('/workers').then(
      ({ found }) => new Map(found.map((one) => [one.id, one.name])),
      () => new Map(),
    );
  }
  return asked;
}

const isRegistered = (id) => /^w[0-9a-f]{14}$/.test(id);

/** A link with its name, which comes when it is known: to its page, or to the jobs that it ran. */
export function workerLink(id, size = 60) {
  const target = hasPage && isRegistered(id) ? path`/worker/${id}` : withQuery('/jobs', { worker: id });
  const element = h('a', { href: BASE + target, title: id }, cut(id, size));
  if (isRegistered(id))
    names().then((known) => {
      if (known.get(id)) element.textContent = cut(known.get(id), size);
    });
  return element;
}

export const workers = async (text) => {
  const known = [...(await names())];
  return known.filter(([id, name]) => `${name} ${id}`.includes(text)).map(([id]) => id);
};
