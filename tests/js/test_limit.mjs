import assert from 'node:assert/strict';
import { test } from 'node:test';
import './page.mjs';
import { preview, settable } from '../../python/jqmaster/ui/static/limitforms.js';
import { byFullness, fullKeys, isWhole } from '../../python/jqmaster/ui/static/limits.js';

test('a limit without keys lets in what it holds, up to the new number', () => {
  const one = { concurrency: 2, running: 2, keys: 1, held: 5 };
  assert.deepEqual(preview(one, 4), { starts: 2, over: 0, isExact: true });
  assert.deepEqual(preview(one, 100), { starts: 5, over: 0, isExact: true });
  assert.deepEqual(preview(one, 1), { starts: 0, over: 1, isExact: true });
});

test('with keys each has the number', () => {
  const busiest = [
    { by: 'a', running: 2, held: 9 },
    { by: 'b', running: 1, held: 0 },
  ];
  const keyed = { by: 'argument.c', concurrency: 2, running: 3, keys: 2, looked: 2, held: 9, full: 1, busiest };
  assert.deepEqual(preview(keyed, 5), { starts: 3, over: 0, isExact: true });
  assert.deepEqual(preview(keyed, 1), { starts: 0, over: 1, isExact: true });
  assert.equal(preview({ ...keyed, keys: 3 }, 5).isExact, false, 'a key was not looked at');
  assert.equal(preview({ ...keyed, held: 10 }, 5).isExact, false, 'a key that holds some is not told');
  assert.equal(isWhole({ ...keyed, more: true }), false);
});

test('the fullest come first', () => {
  const list = [
    { id: 'idle', running: 0, keys: 0 },
    { id: 'full', by: 'name', running: 1, keys: 9, held: 0, full: 2 },
    { id: 'holds', running: 1, concurrency: 1, keys: 1, held: 7 },
    { id: 'runs', running: 4, keys: 4 },
  ];
  assert.deepEqual(
    list.sort(byFullness).map((one) => one.id),
    ['holds', 'full', 'runs', 'idle'],
  );
  assert.deepEqual(list.map(fullKeys), [1, 2, 0, 0]);
});

test('what is set again has what was said and nothing that was counted', () => {
  const one = { id: 'c', match: { name: 'a' }, by: 'queue', concurrency: 3, running: 1, keys: 1 };
  assert.deepEqual(settable(one), { match: { name: 'a' }, by: 'queue', concurrency: 3 });
});
