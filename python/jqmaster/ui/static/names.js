// Names to complete what is typed with. Asked for once in a while, not with each letter.
import { all, api } from './api.js';

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
