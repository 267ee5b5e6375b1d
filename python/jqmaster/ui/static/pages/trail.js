// Who changed what.
import { api, stringify } from '../api.js';
import { table } from '../components/table.js';
import { h } from '../dom.js';
import { cut, moment } from '../format.js';

export async function render(view) {
  const list = table({
    label: 'What was changed',
    empty: 'Nobody has changed anything yet. The setting trail_max says how much is kept.',
    load: async (cursor) => {
      const page = await api.get('/trail', { cursor, count: 100 });
      return { rows: page.trail, cursor: page.cursor };
    },
    key: (entry) => `${entry.time_ms} ${entry.what} ${entry.on ?? ''}`,
    columns: [
      { title: 'When', cell: (entry) => moment(entry.time_ms) },
      { title: 'Who', cell: (entry) => entry.actor || h('span', { class: 'muted' }, 'unknown') },
      { title: 'What', cell: (entry) => entry.what },
      { title: 'On', cell: (entry) => entry.on ?? '' },
      {
        title: 'How',
        hide: 'narrow',
        cell: (entry) =>
          entry.change && h('code', { title: stringify(entry.change) }, cut(stringify(entry.change), 120)),
      },
    ],
  });
  view.append(h('div', { class: 'head' }, h('h1', {}, 'Trail')), list.element);
  await list.refresh();
}
