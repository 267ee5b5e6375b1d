// The keys of the HTTP API: made, listed, taken away.
import { api, path } from '../api.js';
import { confirm, form, show } from '../components/dialog.js';
import { Button, Empty, Head, Loaded } from '../components/parts.js';
import { Pager, Table, usePages } from '../components/rows.js';
import { act } from '../components/toast.js';
import { h } from '../dom.js';
import { moment } from '../format.js';
import { html } from '../view.js';

const ROLES = ['viewer', 'pusher', 'worker', 'operator', 'admin'];

async function create() {
  const made = await form({
    title: 'New key',
    action: 'Create',
    fields: [
      { name: 'name', label: 'Name', required: true, hint: 'whose it is; the trail has it' },
      { name: 'roles', label: 'Roles', type: 'list', required: true, value: ['viewer'], hint: ROLES.join(', ') },
      { name: 'queues', label: 'Queues', type: 'list', hint: 'names or patterns it is bound to; empty for all' },
      { name: 'days', label: 'Expires after', unit: 'days', type: 'number', hint: 'empty: never' },
      { name: 'rate', label: 'At most', unit: 'requests a second', type: 'number' },
    ],
    submit: ({ days, ...given }) => api.post('/keys', { ...given, ttl: days ? days * 86400 : undefined }),
  });
  if (made)
    await show(
      'The key',
      h('p', {}, 'Copy it now: nobody can ask for it again.'),
      h('code', { class: 'key' }, made.key),
    );
  return made;
}

async function revoke(key) {
  const isSure = await confirm({
    title: `Revoke ${key.name}?`,
    action: 'Revoke',
    body: ['Every master refuses it within a second. There is no way back.'],
  });
  return isSure && act(() => api.delete(path`/key/${key.id}`), `${key.name} is revoked.`);
}

const columns = (reload) => [
  { title: 'Name', cell: (key) => key.name },
  { title: 'Roles', cell: (key) => key.roles.join(', ') },
  { title: 'Queues', cell: (key) => key.queues?.join(', ') ?? 'all' },
  { title: 'Created', hide: 'narrow', cell: (key) => moment(key.created_ms) },
  { title: 'Last used', cell: (key) => (key.used_ms ? moment(key.used_ms) : 'never') },
  { title: 'Expires', cell: (key) => (key.expires_ms ? moment(key.expires_ms) : 'never') },
  {
    title: '',
    kind: 'actions',
    cell: (key) => html`<${Button} class="small danger" aria-label=${`Revoke ${key.name}`}
      onClick=${async () => (await revoke(key)) && reload()}>Revoke<//>`,
  },
];

export function Page() {
  const { pager, ...state } = usePages((cursor, signal) => api.get('/keys', { cursor, count: 100 }, { signal }));
  const { reload } = state;
  const make = html`<${Button} class="primary" onClick=${async () => (await create()) && reload()}>New key<//>`;
  const empty = html`<${Empty} command="jqmaster keys create ann --role admin --redis URL">
    There are no keys: whoever reaches this master may do everything. The first is made straight on Redis:<//>`;
  return html`<${Head} title="Keys" actions=${make} />
    <${Loaded} of=${state}>${({ keys, cursor }) => html`<${Table} label="Keys" columns=${columns(reload)} rows=${keys}
      rowKey=${(key) => key.id} empty=${pager.back || cursor ? null : empty}>
      <${Pager} of=${pager} />
    <//>`}<//>`;
}
