import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import './page.mjs';
import { termOf } from '../../python/jqmaster/ui/static/format.js';
import { completions, whereOfLine } from '../../python/jqmaster/ui/static/query.js';

const NOW = 1700000000000;
const CASES = JSON.parse(readFileSync(new URL('querylines.json', import.meta.url)));

for (const { line, where, problem } of CASES) {
  test(`a line describes jobs: ${line}`, () => {
    if (problem) assert.throws(() => whereOfLine(line, NOW), { message: problem, field: 'q' });
    else assert.deepEqual(whereOfLine(line, NOW), where);
  });
}

test('large integers stay exact', () => {
  assert.deepEqual(whereOfLine('id:9007199254740993', NOW).match['argument.id'], [
    9007199254740993n,
    '9007199254740993',
  ]);
});

test('a value of an argument becomes a term that finds it', () => {
  const cases = [
    ['argument.customer.id', 'acme', 'customer.id:acme', 'acme'],
    ['argument.customer', 'a b "c" \\', 'customer:"a b \\"c\\" \\\\"', 'a b "c" \\'],
    ['argument.n', 12, 'n:12', [12, '12']],
    ['argument.n', '12', 'n:"12"', '12'],
    ['argument.flag', true, 'flag:true', [true, 'true']],
    ['argument.queue', 'x', 'argument.queue:x', 'x'],
    ['argument.star', 'a*', 'star:"a*"', 'a*'],
    ['argument.gt', '>5', 'gt:">5"', '>5'],
  ];
  for (const [path, value, line, found] of cases) {
    assert.equal(termOf(path, value), line);
    assert.deepEqual(whereOfLine(line, NOW), { match: { [path]: found } });
  }
  assert.equal(termOf('argument.a b', 1), null);
  assert.equal(termOf('argument', 1), null);
});

test('words are completed: keys, and values of those that are known', async () => {
  const names = { queue: async (text) => ['mail', 'mail two'].filter((one) => one.startsWith(text)) };
  assert.deepEqual(await completions('status:error qu', names), ['status:error queue:']);
  assert.deepEqual(await completions('queue:ma', names), ['queue:mail', 'queue:"mail two"']);
  assert.deepEqual(await completions('customer:x', names), []);
  assert.ok((await completions('', names)).includes('slower:'));
});
