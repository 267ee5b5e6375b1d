// All constraints, the fullest first: how much of each is in use, what it holds and under which keys, and how to change that.
import { all, path } from '../api.js';
import { Button, Empty, Head, Loaded } from '../components/parts.js';
import { Pager, sortOf, Table } from '../components/rows.js';
import { toast } from '../components/toast.js';
import {
  closed,
  edit,
  hold,
  inUse,
  Least,
  Limit,
  Matcher,
  onHold,
  release,
  remove,
  shownKey,
  Use,
} from '../constraints.js';
import { count, cut, jobs } from '../format.js';
import { byFullness, fullKeys, isFull } from '../limit.js';
import { withQuery } from '../router.js';
import { html, Link, useData, useQuery } from '../view.js';

const BUSIEST = 3;
const PAGE = 50;
const ORDERS = {
  held: byFullness,
  full: (a, b) => fullKeys(b) - fullKeys(a) || byFullness(a, b),
  running: (a, b) => b.running - a.running || byFullness(a, b),
  name: (a, b) => (a.id < b.id ? 1 : -1),
};

const none = (text = '–') => html`<span class="zero">${text}</span>`;

/** The fullest keys, each a way to itself. */
function Busiest({ one }) {
  const shown = (one.by ? one.busiest : []).filter((key) => key.held || key.running || key.opens_ms);
  if (!shown.length) return none();
  return html`<span class="keys-in-short">${shown.map((key) => {
    const name = shownKey(key.by);
    const find = typeof key.by === 'string' ? key.by.slice(0, 64) : '';
    return html`<span key=${name} class=${isFull(one, key) ? 'is-full' : ''}>
      <${Link} to=${withQuery(path`/constraint/${one.id}`, { find })}>${cut(name, 24)}<//>
      ${key.held ? ` ${count(key.held)} held` : ` ${count(key.running)} ${inUse(one)}`}</span>`;
  })}</span>`;
}

function summary(found) {
  const holding = found.filter((one) => one.held);
  const held = holding.reduce((sum, one) => sum + one.held, 0);
  const told = holding.length
    ? `${count(holding.length)} of them ${holding.length === 1 ? 'holds' : 'hold'} ${jobs(held)}`
    : 'none of them holds a job';
  return `${count(found.length)} ${found.length === 1 ? 'constraint' : 'constraints'}; ${told}.`;
}

function columns(after) {
  const action = (text, run, one, rest = {}) =>
    html`<${Button} needs="operator" class="small" onClick=${async () => after(await run(one))} aria-label=${`${text} ${one.id}`}
      ...${rest}>${text === 'Open' ? text : `${text}…`}<//>`;
  return [
    {
      title: 'Constraint',
      kind: 'wide',
      sort: 'name',
      cell: (one) => html`<${Link} to=${path`/constraint/${one.id}`}>${one.id}<//>
        <p class="muted hide-narrow matcher-in-short"><${Matcher} constraint=${one} most=${60} /></p>`,
    },
    {
      title: 'Limit',
      cell: (one) => html`<${Limit} constraint=${one} done=${() => after(true)} />
        ${one.by ? html`<span class="muted"> for each ${[one.by].flat().join(', ')}</span>` : null}`,
    },
    {
      title: 'In use',
      sort: 'running',
      cell: (one) =>
        one.by
          ? `${count(one.running)} ${inUse(one)}`
          : html`<${Use} constraint=${one} /><span class="said">${closed(one)}</span>`,
    },
    {
      title: 'Held',
      kind: 'number',
      sort: 'held',
      cell: (one) => {
        const number = html`<${Least} of=${one} number=${one.held ?? 0} />`;
        return one.held ? html`<b>${number}</b>` : none(number);
      },
    },
    {
      title: 'Full keys',
      kind: 'number',
      sort: 'full',
      tip: 'Keys under which nothing can start now, of those in use',
      cell: (one) => {
        if (!one.by) return none();
        const text = html`<${Least} of=${one} number=${one.full} /> of ${count(one.keys)}`;
        return one.full ? text : none(text);
      },
    },
    { title: 'Fullest keys', hide: 'narrow', cell: (one) => html`<${Busiest} one=${one} />` },
    {
      title: '',
      kind: 'actions',
      hide: 'narrow',
      cell: (one) => [
        action('Change', edit, one),
        action('Hold', hold, one),
        onHold(one) ? action('Open', release, one) : null,
        action('Delete', remove, one, { class: 'small danger' }),
      ],
    },
  ];
}

export function Page() {
  const [{ sort = '-held', at = '' }, setQuery] = useQuery();
  const state = useData((signal) => all('/constraints', { busiest: BUSIEST }, { signal }), { ms: 5000 });
  const after = (answer) => {
    if (!answer) return;
    if (typeof answer === 'string') toast(answer);
    state.reload();
  };
  const create = html`<${Button} needs="operator" class="primary" onClick=${async () => after(await edit())}>New constraint<//>`;
  return html`<${Head} title="Constraints" actions=${create} />
    <${Loaded} of=${state}>${({ found }) => {
      const [name, isDown] = sortOf(sort);
      const rows = [...found].sort(ORDERS[name] || byFullness);
      if (!isDown) rows.reverse();
      const from = Number(at) || 0;
      const to = (start) => () => setQuery({ at: start || '' });
      const pager = {
        number: from / PAGE + 1,
        back: from ? to(from - PAGE) : null,
        forth: from + PAGE < rows.length ? to(from + PAGE) : null,
      };
      const empty = html`<${Empty} command=${`jqmaster limits set per-customer '{"name": "mail"}' --by argument.customer --concurrency 5`}>
        No constraints: every job starts as soon as a worker has room. One limits how many jobs run at once, or start in a
        time: of all that match, or for each customer.<//>`;
      return html`${found.length ? html`<p class="muted">${summary(found)}</p>` : null}
        <${Table} label="Constraints" columns=${columns(after)} rows=${rows.slice(from, from + PAGE)} rowKey=${(one) => one.id}
          sort=${sort} onSort=${(next) => setQuery({ sort: next === '-held' ? '' : next, at: '' })} empty=${empty}>
          <${Pager} of=${pager} />
        <//>`;
    }}<//>`;
}
