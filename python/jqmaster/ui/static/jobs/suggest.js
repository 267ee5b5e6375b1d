// Names to complete what is typed with. Asked for once in a while, not with each letter.
import { all, api } from '../api.js';
import { debounced, h } from '../dom.js';

const KEPT_MS = 30000;

function kept(load) {
  let at = 0;
  let names = null;
  return async (text = '') => {
    if (!names || Date.now() - at > KEPT_MS) {
      at = Date.now();
      names = load().catch((problem) => {
        names = null;
        throw problem;
      });
    }
    const wanted = text.toLowerCase();
    const found = (await names).filter((name) => name.toLowerCase().includes(wanted));
    // Those that begin so come first.
    return found.sort((a, b) => b.toLowerCase().startsWith(wanted) - a.toLowerCase().startsWith(wanted));
  };
}

export const queues = kept(async () => (await all('/queues')).found.map((queue) => queue.name));
export const tags = kept(async () => (await api.get('/tags', { top: 500 })).tags.map((one) => one.tag));
export const groups = kept(async () => (await all('/failures')).found.map((one) => one.group));
export const names = kept(async () => {
  const from = Date.now() - 8 * 86400000;
  const { found } = await all('/stats/series', { by: 'day', from_ms: from });
  return [...new Set(found.map((one) => one.name))].sort();
});

let made = 0;

/** Completes an input that stands in a form. */
export function completed(input, suggest) {
  made += 1;
  const list = h('datalist', { id: `suggest-${made}` });
  input.setAttribute('list', list.id);
  input.after(list);
  let latest = 0;
  const look = async () => {
    latest += 1;
    const mine = latest;
    try {
      const found = await suggest(input.value.trim());
      if (mine === latest) list.replaceChildren(...found.slice(0, 50).map((text) => h('option', { value: text })));
    } catch (problem) {
      console.debug(problem);
    }
  };
  input.addEventListener('focus', look);
  input.addEventListener('input', debounced(look, 150));
}
