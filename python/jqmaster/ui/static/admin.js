// The keys of the HTTP API: made, listed, revoked. And the audit log: who changed what.
import { api, path, stringify } from './api.js';
import { cut, moment } from './format.js';
import { act, confirm, form, show } from './forms.js';
import { Ago, Button, Empty, FilterBar, Head, Loaded, none, Pager, Table, usePages } from './parts.js';
import { html, Link, useQuery } from './view.js';

const ROLES = ['viewer', 'pusher', 'worker', 'operator', 'admin'];

async function create(isFirst) {
  const role = isFirst ? 'admin' : 'viewer';
  const made = await form({
    title: 'New key',
    body: isFirst ? 'As soon as there is one, every request needs a key. Only an admin makes more.' : [],
    action: 'Create',
    fields: [
      { name: 'name', label: 'Name', required: true, hint: 'whose it is; the audit log names it' },
      { name: 'roles', label: 'Roles', type: 'list', required: true, value: [role], hint: ROLES.join(', ') },
      { name: 'queues', label: 'Queues', type: 'list', hint: 'names or patterns it is bound to; empty for all' },
      { name: 'days', label: 'Expires after', unit: 'days', type: 'number', hint: 'empty: never' },
      { name: 'rate', label: 'At most', unit: 'requests a second', type: 'number' },
    ],
    submit: ({ days, ...given }) => api.post('/keys', { ...given, ttl: days ? days * 86400 : undefined }),
  });
  const body = made && html`<p>Copy it now: it is not shown again.</p><code class="key">${made.key}</code>`;
  if (made) await show('The key', body);
  return made;
}

async function revoke(key) {
  const isSure = await confirm({
    title: `Revoke ${key.name}?`,
    action: 'Revoke',
    body: 'Every server refuses it within a second. This cannot be undone.',
  });
  return isSure && act(() => api.delete(path`/key/${key.id}`), `${key.name} is revoked.`);
}

const keyColumns = (reload) => [
  { title: 'Name', kind: 'wide', cell: (key) => key.name },
  { title: 'Roles', cell: (key) => key.roles.join(', ') },
  { title: 'Queues', cell: (key) => key.queues?.join(', ') ?? 'all' },
  { title: 'Created', hide: 'narrow', cell: (key) => moment(key.created_ms) },
  { title: 'Last used', cell: (key) => (key.used_ms ? html`<${Ago} ms=${key.used_ms} />` : 'never') },
  { title: 'Expires', cell: (key) => (key.expires_ms ? moment(key.expires_ms) : 'never') },
  {
    title: '',
    kind: 'actions',
    cell: (key) => html`<${Button} class="small danger" aria-label=${`Revoke ${key.name}`}
      onClick=${async () => (await revoke(key)) && reload()}>Revoke…<//>`,
  },
];

export function Keys() {
  const { pager, ...state } = usePages((cursor, signal) => api.get('/keys', { cursor, count: 100 }, { signal }));
  const { reload } = state;
  const isFirst = state.data?.keys.length === 0 && !pager.back;
  const make = html`<${Button} class="primary" onClick=${async () => (await create(isFirst)) && reload()}>New key…<//>`;
  const empty = html`<${Empty} command="jqmaster keys create ann --role admin --redis URL">
    There are no keys: everybody who reaches this server may do everything. The first is made here, or straight on Redis:<//>`;
  return html`<${Head} title="Keys" actions=${make} />
    <${Loaded} of=${state}>${({
      keys,
      cursor,
    }) => html`<${Table} label="Keys" columns=${keyColumns(reload)} rows=${keys}
      rowKey=${(key) => key.id} empty=${pager.back || cursor ? null : empty}><${Pager} of=${pager} /><//>`}<//>`;
}

// -- the audit log ------------------------------------------------------------------------------------

const FILTERS = [
  { name: 'who', label: 'Who', type: 'search', placeholder: 'the name of a key' },
  { name: 'what', label: 'What', type: 'search', placeholder: 'queue, retry, constrain, …' },
  { name: 'on', label: 'On', type: 'search', placeholder: 'the name or id' },
];

/** Where what was changed is seen now. */
function Target({ entry: { what, on } }) {
  if (!on) return none();
  const isJob = /^[0-9a-f]{14}(?:[0-9a-f]{2})?$/.test(on);
  const place = isJob
    ? 'job'
    : { queue: 'queue', worker: 'worker', constrain: 'limit', hold: 'limit', schedule: 'schedule' }[what];
  return place ? html`<${Link} to=${`/${place}${path`/${on}`}`}>${cut(on, 80)}<//>` : cut(on, 80);
}

/** "max_waiting 50, paused true"; without the rule of a timezone, which its name says. */
const changes = (change) =>
  Object.entries(change)
    .filter(([name]) => name !== 'tz' || !change.timezone)
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : stringify(value)}`)
    .join(', ');

const ENTRIES = [
  {
    title: 'When',
    cell: ({ time_ms }) => html`<span class="nowrap" title=${moment(time_ms)}>${moment(time_ms)}</span>`,
  },
  { title: 'Who', cell: ({ actor }) => actor || none('unknown') },
  { title: 'What', cell: ({ what, count }) => (count > 1 ? `${what}, ${count} jobs` : what) },
  { title: 'On', kind: 'wide', cell: (entry) => html`<${Target} entry=${entry} />` },
  {
    title: 'How',
    kind: 'wide',
    cell: ({ change }) =>
      change ? html`<span class="anywhere" title=${stringify(change)}>${cut(changes(change), 160)}</span>` : none(),
  },
];

export function Trail() {
  const [filters] = useQuery();
  const wanted = Object.fromEntries(FILTERS.map(({ name }) => [name, filters[name] || '']));
  const { pager, ...state } = usePages(
    (cursor, signal) => api.get('/trail', { ...wanted, cursor, count: 100 }, { signal }),
    { deps: Object.values(wanted) },
  );
  const empty = Object.values(wanted).some(Boolean)
    ? html`<${Empty}>No such entry.<//>`
    : html`<${Empty}>Nobody has changed anything yet. The setting trail_max says how much is kept.<//>`;
  return html`<${Head} title="Audit log" />
    <${FilterBar} fields=${FILTERS} />
    <${Loaded} of=${state}>${({
      trail,
    }) => html`<${Table} label="What was changed" columns=${ENTRIES} rows=${trail} empty=${empty}
      rowKey=${({ time_ms, what, on = '' }) => `${time_ms} ${what} ${on}`}><${Pager} of=${pager} /><//>`}<//>`;
}
