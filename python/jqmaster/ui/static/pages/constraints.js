// All constraints: how much of each is in use, what it holds, and how to change that.
import { api, path } from '../api.js';
import { table } from '../components/table.js';
import { toast } from '../components/toast.js';
import { closed, edit, hold, inUse, limits, matcher, onHold, release, remove, use } from '../constraints.js';
import { operatorButton as button, h } from '../dom.js';
import { count } from '../format.js';
import { every } from '../live.js';
import { link } from '../router.js';

export async function render(view) {
  const after = async (answer, text = typeof answer === 'string' ? answer : '') => {
    if (!answer) return;
    if (text) toast(text);
    await list.refresh();
  };
  const list = table({
    label: 'Constraints',
    key: (one) => one.id,
    open: true,
    empty: 'No constraints: every job starts as soon as a worker has room.',
    load: async (cursor, signal) => {
      const page = await api.get('/constraints', { cursor, count: 50 }, { signal });
      return { rows: page.constraints, cursor: page.cursor };
    },
    columns: [
      { title: 'Constraint', kind: 'wide', cell: (one) => link(path`/constraint/${one.id}`, one.id) },
      { title: 'Jobs', kind: 'wide', hide: 'narrow', cell: (one) => matcher(one, 60) },
      {
        title: 'Limit',
        cell: (one) => [
          limits(one),
          one.by ? h('span', { class: 'muted' }, ` for each ${[one.by].flat().join(', ')}`) : null,
        ],
      },
      { title: 'In use', cell: (one) => (one.by ? h('span', {}, `${count(one.running)} ${inUse(one)}`) : use(one)) },
      { title: 'Keys', kind: 'number', hide: 'narrow', cell: (one) => (one.by ? count(one.keys) : '–') },
      {
        title: 'Held',
        kind: 'number',
        cell: (one) =>
          one.by
            ? link(path`/constraint/${one.id}`, 'by key')
            : one.held
              ? h('b', {}, count(one.held))
              : h('span', { class: 'zero' }, '0'),
      },
      {
        title: 'Closed',
        cell: (one) =>
          one.by && one.keys
            ? link(path`/constraint/${one.id}`, 'by key')
            : closed(one) || h('span', { class: 'zero' }, '–'),
      },
      {
        title: '',
        kind: 'actions',
        hide: 'narrow',
        cell: (one) => [
          button('Change', async () => after(await edit(one), `${one.id} is changed.`), {
            class: 'small',
            'aria-label': `Change ${one.id}`,
          }),
          button('Hold', async () => after(await hold(one)), { class: 'small', 'aria-label': `Hold ${one.id}` }),
          onHold(one)
            ? button('Open', async () => after(await release(one)), { class: 'small', 'aria-label': `Open ${one.id}` })
            : null,
          button('Delete', async () => after(await remove(one)), {
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
        button('New constraint', async () => after(await edit(), 'The constraint is in force.'), { class: 'primary' }),
      ),
    ),
    list.element,
  );
  await list.refresh();
  return every(3000, () => list.refresh());
}
