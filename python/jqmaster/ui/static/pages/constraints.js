// All constraints, the fullest first: how much of each is in use, what it holds and under which keys, and how to change that.
import { all, path } from '../api.js';
import { table } from '../components/table.js';
import { toast } from '../components/toast.js';
import {
  closed,
  edit,
  hold,
  inUse,
  isEditing,
  least,
  limitEditor,
  matcher,
  onHold,
  release,
  remove,
  shownKey,
  use,
} from '../constraints.js';
import { operatorButton as button, h } from '../dom.js';
import { count, cut, jobs } from '../format.js';
import { byFullness, isFull } from '../limit.js';
import { every } from '../live.js';
import { link, withQuery } from '../router.js';

const BUSIEST = 3;
const PAGE = 50;

const none = (text = '–') => h('span', { class: 'zero' }, text);

/** The fullest keys, each a way to itself. */
function busiest(one) {
  if (!one.by) return none();
  const shown = one.busiest.filter((key) => key.held || key.running || key.opens_ms);
  if (!shown.length) return none();
  return h(
    'span',
    { class: 'keys-in-short' },
    shown.map((key) => {
      const name = shownKey(key.by);
      const said = key.held ? `${count(key.held)} held` : `${count(key.running)} ${inUse(one)}`;
      return h(
        'span',
        { class: isFull(one, key) ? 'is-full' : '' },
        link(
          withQuery(path`/constraint/${one.id}`, { find: typeof key.by === 'string' ? cut(name, 64) : '' }),
          cut(name, 24),
        ),
        ` ${said}`,
      );
    }),
  );
}

export async function render(view) {
  const note = h('p', { class: 'muted' });
  const after = async (answer, text = typeof answer === 'string' ? answer : '') => {
    if (!answer) return;
    if (text) toast(text);
    await list.refresh();
  };
  const list = table({
    label: 'Constraints',
    key: (one) => one.id,
    open: true,
    empty: () => [
      h('p', {}, 'No constraints: every job starts as soon as a worker has room.'),
      h('p', {}, 'One limits how many jobs run at once, or start in a time: of all that match, or for each customer.'),
    ],
    load: async (cursor, signal) => {
      const { found } = await all('/constraints', { busiest: BUSIEST }, { signal });
      found.sort(byFullness);
      const held = found.reduce((sum, one) => sum + (one.held ?? 0), 0);
      const holding = found.filter((one) => one.held).length;
      note.textContent = found.length
        ? `${count(found.length)} ${found.length === 1 ? 'constraint' : 'constraints'}, the fullest first; ${holding ? `${count(holding)} of them ${holding === 1 ? 'holds' : 'hold'} ${jobs(held)}` : 'none of them holds a job'}.`
        : '';
      const from = Number(cursor) || 0;
      return { rows: found.slice(from, from + PAGE), cursor: from + PAGE < found.length ? String(from + PAGE) : '' };
    },
    columns: [
      {
        title: 'Constraint',
        kind: 'wide',
        cell: (one) => [
          link(path`/constraint/${one.id}`, one.id),
          h('p', { class: 'muted hide-narrow' }, 'of ', matcher(one, 60)),
        ],
      },
      {
        title: 'Limit',
        cell: (one) => [
          limitEditor(one, () => list.refresh()),
          one.by ? h('span', { class: 'muted' }, ` for each ${[one.by].flat().join(', ')}`) : null,
        ],
      },
      {
        title: 'In use',
        cell: (one) =>
          one.by
            ? `${count(one.running)} ${inUse(one)}`
            : [use(one), closed(one) ? h('span', { class: 'said' }, closed(one)) : null],
      },
      {
        title: 'Held',
        kind: 'number',
        cell: (one) => (one.held ? h('b', {}, least(one, one.held)) : none(least(one, 0))),
      },
      {
        title: 'Full keys',
        kind: 'number',
        tip: 'Keys under which nothing can start now, of those in use',
        cell: (one) =>
          one.by
            ? one.full
              ? [least(one, one.full), ` of ${count(one.keys)}`]
              : none([least(one, 0), ` of ${count(one.keys)}`])
            : none(),
      },
      { title: 'Fullest keys', hide: 'narrow', cell: busiest },
      {
        title: '',
        kind: 'actions',
        hide: 'narrow',
        cell: (one) => [
          button('Change…', async () => after(await edit(one)), { class: 'small', 'aria-label': `Change ${one.id}` }),
          button('Hold…', async () => after(await hold(one)), { class: 'small', 'aria-label': `Hold ${one.id}` }),
          onHold(one)
            ? button('Open', async () => after(await release(one)), { class: 'small', 'aria-label': `Open ${one.id}` })
            : null,
          button('Delete…', async () => after(await remove(one)), {
            class: 'small danger',
            'aria-label': `Delete ${one.id}`,
          }),
        ],
      },
    ],
  });
  view.append(
    h(
      'div',
      { class: 'head' },
      h('h1', {}, 'Constraints'),
      h(
        'div',
        { class: 'actions' },
        button('New constraint', async () => after(await edit()), { class: 'primary' }),
      ),
    ),
    note,
    list.element,
  );
  await list.refresh();
  return every(3000, async () => {
    if (!isEditing()) await list.refresh();
  });
}
