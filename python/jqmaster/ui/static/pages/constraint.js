// One constraint: what it says, what it holds and where, and its keys, the fullest first.
import { api, path, stringify } from '../api.js';
import { filterBar } from '../components/filter.js';
import { table } from '../components/table.js';
import { toast } from '../components/toast.js';
import { tree } from '../components/tree.js';
import {
  closed,
  edit,
  hold,
  inUse,
  isEditing,
  least,
  limitEditor,
  onHold,
  partly,
  release,
  remove,
  shownKey,
  use,
} from '../constraints.js';
import { operatorButton as button, fill, h } from '../dom.js';
import { count, cut, moment } from '../format.js';
import { isWhole } from '../limit.js';
import { every } from '../live.js';
import { link, navigate } from '../router.js';

const BUSIEST = 100;
const PAGE = 25;
// Of a long value only a digest is known, which is not the value.
const isDigest = (by) => [by].flat().some((part) => typeof part === 'string' && part.startsWith('sha1:'));
const none = (text = '–') => h('span', { class: 'zero' }, text);

export async function render(view, { id }) {
  let constraint = await api.get(path`/constraint/${id}`, { busiest: BUSIEST });
  const actions = h('div', { class: 'actions' });
  const facts = h('dl', { class: 'facts' });
  const match = h('section', { class: 'panel' });
  const queues = h('section', { class: 'panel' });
  const note = h('p', { class: 'muted', role: 'status' });
  const after = async (answer, text = typeof answer === 'string' ? answer : '') => {
    if (!answer) return;
    if (text) toast(text);
    await refresh();
  };
  const keyOf = (key) => (constraint.by ? (key.by ?? null) : undefined);
  const find = constraint.by
    ? filterBar({
        fields: [
          { name: 'find', label: 'Find a key', type: 'search', placeholder: 'begins with…' },
          {
            name: 'keys',
            label: 'Show',
            type: 'select',
            placeholder: 'the fullest first',
            options: [['all', 'all, by value']],
          },
        ],
        change: () => list.reset(),
      })
    : null;

  async function load(cursor, signal) {
    const { find: prefix, keys: which } = find?.values() ?? {};
    if (prefix || which || !constraint.by) {
      const page = await api.get(path`/constraint/${id}/usage`, { prefix, cursor, count: PAGE }, { signal });
      note.textContent = prefix
        ? `Keys whose value begins with “${cut(prefix, 64)}”, in order of their value.`
        : constraint.by
          ? 'All keys in use, in order of their value.'
          : '';
      return { rows: page.keys, cursor: page.cursor };
    }
    const { busiest, looked, keys } = constraint;
    note.textContent =
      looked < keys
        ? `The fullest of ${count(looked)} keys that were looked at; ${count(keys)} are in use.`
        : `${keys > busiest.length ? `The ${count(busiest.length)} fullest of ${count(keys)} keys` : 'All keys'} in use, the fullest first.`;
    const from = Number(cursor) || 0;
    return { rows: busiest.slice(from, from + PAGE), cursor: from + PAGE < busiest.length ? String(from + PAGE) : '' };
  }

  const list = table({
    label: 'Keys in use',
    key: (key) => stringify(key.by ?? null),
    empty: () => (find?.values().find ? 'No key in use begins so.' : 'Nothing runs under it, and nothing is held.'),
    load,
    columns: [
      { title: 'Key', kind: 'wide', cell: (key) => shownKey(key.by) },
      { title: 'In use', cell: (key) => use(constraint, key) },
      {
        title: 'Held jobs',
        kind: 'number',
        cell: (key) => (key.held ? h('b', {}, `${count(key.held)}${key.more ? '+' : ''}`) : none('0')),
      },
      {
        title: 'Next',
        tip: 'The first of the jobs that it holds',
        cell: (key) => (key.next ? link(path`/job/${key.next}`, key.next) : none()),
      },
      {
        title: 'Groups',
        kind: 'number',
        hide: 'narrow',
        tip: 'Held jobs of one queue under the same keys are one group',
        cell: (key) => `${count(key.lanes)}${key.more ? '+' : ''}`,
      },
      { title: 'Closed', cell: (key) => closed(constraint, key) || none() },
      {
        title: '',
        kind: 'actions',
        cell: (key) =>
          isDigest(key.by)
            ? h('span', { class: 'muted', title: 'Of a value this long only its digest is known' }, 'long value')
            : [
                button('Hold…', async () => after(await hold(constraint, keyOf(key), shownKey(key.by))), {
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

  function fact(name, ...value) {
    return [h('dt', {}, name), h('dd', {}, value)];
  }

  function draw() {
    fill(
      facts,
      fact('Limit', limitEditor(constraint, refresh)),
      constraint.by ? fact('For each', h('code', {}, [constraint.by].flat().join(', '))) : null,
      constraint.cost !== undefined ? fact('A start counts', h('code', {}, String(constraint.cost))) : null,
      constraint.expires_ms ? fact('Expires', moment(constraint.expires_ms)) : null,
      fact(
        inUse(constraint) === 'running' ? 'Running' : 'Places in use',
        count(constraint.running),
        constraint.order ? h('span', { class: 'muted' }, ' (jobs that wait for their retry keep theirs)') : null,
      ),
      fact('Held jobs', constraint.held ? h('b', {}, least(constraint, constraint.held)) : none('0')),
      constraint.by
        ? fact('Keys in use', count(constraint.keys), ', ', least(constraint, constraint.full), ' of them full')
        : null,
      isWhole(constraint) ? null : fact('Counted', partly(constraint)),
    );
    fill(
      queues,
      h('h2', {}, 'Queues it holds jobs of'),
      constraint.queues.length
        ? h(
            'dl',
            { class: 'facts' },
            constraint.queues.map(([name, held]) =>
              fact(link(path`/queue/${name}`, cut(name, 60)), `${count(held)} held`),
            ),
          )
        : h('p', { class: 'muted' }, 'None: nothing is held.'),
    );
  }

  async function refresh() {
    constraint = await api.get(path`/constraint/${id}`, { busiest: BUSIEST });
    draw();
    await list.refresh();
  }

  const drawMatch = () => fill(match, h('h2', {}, 'Jobs it concerns'), tree(constraint.match, 'Matcher'));
  fill(
    actions,
    button(
      'Change…',
      async () => {
        await after(await edit(constraint));
        drawMatch();
      },
      { class: 'primary', 'aria-label': `Change ${id}` },
    ),
    button('Hold…', async () => after(await hold(constraint)), { 'aria-label': `Hold ${id}` }),
    button(
      'Delete…',
      async () => {
        if (await remove(constraint)) navigate('/constraints');
      },
      { class: 'danger', 'aria-label': `Delete ${id}` },
    ),
  );
  view.append(
    h(
      'div',
      { class: 'head' },
      h('h1', {}, h('span', { class: 'crumb' }, link('/constraints', 'Constraints'), ' / '), id),
      actions,
    ),
    h('div', { class: 'grid' }, h('section', { class: 'panel' }, h('h2', {}, 'What it says'), facts), queues, match),
    h('h2', {}, 'Keys in use'),
    ...(find ? [find.element] : []),
    note,
    list.element,
  );
  draw();
  drawMatch();
  await list.refresh();
  return every(3000, async () => {
    if (!isEditing()) await refresh();
  });
}
