// Who changed what.
import { api, stringify } from '../api.js';
import { Empty, Head, Loaded } from '../components/parts.js';
import { Pager, Table, usePages } from '../components/rows.js';
import { cut, moment } from '../format.js';
import { html } from '../view.js';

const COLUMNS = [
  { title: 'When', cell: (entry) => moment(entry.time_ms) },
  { title: 'Who', cell: (entry) => entry.actor || html`<span class="muted">unknown</span>` },
  { title: 'What', cell: (entry) => entry.what },
  { title: 'On', cell: (entry) => entry.on ?? '' },
  {
    title: 'How',
    hide: 'narrow',
    cell: (entry) =>
      entry.change && html`<code title=${stringify(entry.change)}>${cut(stringify(entry.change), 120)}</code>`,
  },
];

export function Page() {
  const pages = usePages((cursor, signal) => api.get('/trail', { cursor, count: 100 }, { signal }));
  const empty = html`<${Empty}>Nobody has changed anything yet. The setting trail_max says how much is kept.<//>`;
  return html`<${Head} title="Trail" />
    <${Loaded} of=${pages}>
      ${({ trail }) => html`<${Table} label="What was changed" columns=${COLUMNS} rows=${trail} empty=${empty}
        rowKey=${(entry) => `${entry.time_ms} ${entry.what} ${entry.on ?? ''}`}>
        <${Pager} of=${pages.pager} />
      <//>`}
    <//>`;
}
