// One constraint: what it says, and its keys in use.
import { api, path, stringify } from '../api.js';
import { table } from '../components/table.js';
import { toast } from '../components/toast.js';
import { tree } from '../components/tree.js';
import { closed, edit, hold, inUse, limits, onHold, release, remove, use } from '../constraints.js';
import { operatorButton as button, fill, h } from '../dom.js';
import { count } from '../format.js';
import { every } from '../live.js';
import { link, navigate } from '../router.js';

const shownKey = (by) => (by === undefined ? '(all)' : typeof by === 'string' ? by : stringify(by));
// Of a long value only a digest is known, which is not the value.
const isDigest = (by) => [by].flat().some((part) => typeof part === 'string' && part.startsWith('sha1:'));

export async function render(view, { id }) {
  let constraint = await api.get(path`/constraint/${id}`);
  const actions = h('div', { class: 'actions' });
  const facts = h('dl', { class: 'facts' });
  const match = h('section', { class: 'panel' });
  const after = async (answer, text = typeof answer === 'string' ? answer : '') => {
    if (!answer) return;
    if (text) toast(text);
    await refresh();
  };
  const keyOf = (key) => (constraint.by ? (key.by ?? null) : undefined);
  const list = table({
    label: 'Keys in use',
    key: (key) => stringify(key.by ?? null),
    empty: 'Nothing runs under it, and nothing is held.',
    load: async (cursor, signal) => {
      const page = await api.get(path`/constraint/${id}/usage`, { cursor, count: 50 }, { signal });
      return { rows: page.keys, cursor: page.cursor };
    },
    columns: [
      { title: 'Key', kind: 'wide', cell: (key) => shownKey(key.by) },
      { title: 'In use', cell: (key) => use(constraint, key) },
      {
        title: 'Held jobs',
        kind: 'number',
        cell: (key) => (key.held ? h('b', {}, count(key.held)) : h('span', { class: 'zero' }, '0')),
      },
      {
        title: 'Groups',
        kind: 'number',
        hide: 'narrow',
        tip: 'Held jobs of one queue under the same keys are one group',
        cell: (key) => count(key.lanes),
      },
      { title: 'Closed', cell: (key) => closed(constraint, key) || h('span', { class: 'zero' }, '–') },
      {
        title: '',
        kind: 'actions',
        cell: (key) =>
          isDigest(key.by)
            ? h('span', { class: 'muted', title: 'Of a value this long only its digest is known' }, 'long value')
            : [
                button('Hold', async () => after(await hold(constraint, keyOf(key), shownKey(key.by))), {
                  class: 'small',
                  'aria-label': `Hold ${shownKey(key.by)}`,
                }),
                onHold(constraint, key)
                  ? button('Open', async () => after(await release(constraint, keyOf(key))), {
                      class: 'small',
                      'aria-label': `Open ${shownKey(key.by)}`,
                    })
                  : null,
              ],
      },
    ],
  });

  function draw() {
    fill(
      facts,
      h('dt', {}, 'Limit'),
      h('dd', {}, limits(constraint)),
      constraint.by ? [h('dt', {}, 'For each'), h('dd', {}, h('code', {}, [constraint.by].flat().join(', ')))] : null,
      constraint.cost !== undefined
        ? [h('dt', {}, 'A start counts'), h('dd', {}, h('code', {}, String(constraint.cost)))]
        : null,
      h('dt', {}, inUse(constraint) === 'running' ? 'Running' : 'Places in use'),
      h(
        'dd',
        {},
        count(constraint.running),
        constraint.order ? h('span', { class: 'muted' }, ' (jobs that wait for their retry keep theirs)') : null,
      ),
      h('dt', {}, 'Keys in use'),
      h('dd', {}, count(constraint.keys)),
    );
  }

  async function refresh() {
    constraint = await api.get(path`/constraint/${id}`);
    draw();
    await list.refresh();
  }

  const drawMatch = () => fill(match, h('h2', {}, 'Jobs it concerns'), tree(constraint.match, 'Matcher'));
  fill(
    actions,
    button(
      'Change',
      async () => {
        await after(await edit(constraint), 'It is changed.');
        drawMatch();
      },
      { class: 'primary' },
    ),
    button('Hold', async () => after(await hold(constraint))),
    button(
      'Delete',
      async () => {
        if (await remove(constraint)) navigate('/constraints');
      },
      { class: 'danger' },
    ),
  );
  view.append(
    h(
      'div',
      { class: 'head' },
      h('h1', {}, h('span', { class: 'crumb' }, link('/constraints', 'Constraints'), ' / '), id),
      actions,
    ),
    h('div', { class: 'grid' }, h('section', { class: 'panel' }, h('h2', {}, 'What it says'), facts), match),
    h('h2', {}, 'Keys in use'),
    list.element,
  );
  draw();
  drawMatch();
  await list.refresh();
  return every(3000, refresh);
}
