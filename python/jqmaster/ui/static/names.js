// Names of things, to complete what is typed with.
import { all, api } from './api.js';
import { kept, registered } from './parts.js';

/** async (text) → names that have it; those that begin so come first. */
function completed(load) {
  const known = kept(load);
  return async (text = '') => {
    const wanted = text.toLowerCase();
    const found = (await known()).filter((name) => name.toLowerCase().includes(wanted));
    return found.sort((a, b) => b.toLowerCase().startsWith(wanted) - a.toLowerCase().startsWith(wanted));
  };
}

export const queues = completed(async () => (await all('/queues')).found.map((queue) => queue.name));
export const tags = completed(async () => (await api.get('/tags', { count: 500 })).tags.map((one) => one.tag));
export const groups = completed(async () => (await all('/failures')).found.map((one) => one.group));
export const names = completed(async () => {
  const from = Date.now() - 8 * 86400000;
  const { found } = await all('/stats', { series: 1, by: 'day', from_ms: from });
  return [...new Set(found.map((one) => one.name))].sort();
});

/** Ids of workers whose name has a text, to complete with. */
export const workers = async (text) =>
  (await registered()).filter(({ id, name }) => `${name} ${id}`.includes(text)).map(({ id }) => id);
