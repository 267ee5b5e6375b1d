// Names of things, to complete what is typed with.
import { all, api } from './api.js';
import { kept, registered } from './parts.js';

/** async (text) → names that have it; those that begin so come first. */
function completed(load) {
  const known = kept(load);
  return async (text = '') => {
    const wanted = text.toLowerCase();
    const fitting = (await known()).filter((name) => name.toLowerCase().includes(wanted));
    return fitting.sort((a, b) => b.toLowerCase().startsWith(wanted) - a.toLowerCase().startsWith(wanted));
  };
}

export const queues = completed(async () => (await all('/queues')).entries.map(({ name }) => name));
export const tags = completed(async () => (await api.get('/tags', { count: 500 })).tags.map(({ tag }) => tag));
export const groups = completed(async () => (await all('/failures')).entries.map(({ group }) => group));
export const names = completed(async () => {
  const from = Date.now() - 8 * 86400000;
  const { entries } = await all('/stats', { series: 1, by: 'day', from_ms: from });
  return [...new Set(entries.map(({ name }) => name))].sort();
});

/** Ids of workers whose name has a text, to complete with. */
export const workers = async (text) =>
  (await registered()).filter(({ id, name }) => `${name} ${id}`.includes(text)).map(({ id }) => id);
