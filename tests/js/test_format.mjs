import assert from 'node:assert/strict';
import { test } from 'node:test';
import './page.mjs';

const format = await import('../../python/jqmaster/ui/static/format.js');

test('nothing is not 0', () => {
  assert.equal(format.duration(undefined), '–');
  assert.equal(format.duration(null), '–');
  assert.equal(format.duration(Number.NaN), '–');
  assert.equal(format.duration(0), '0 ms');
  assert.equal(format.count(undefined), '–');
  assert.equal(format.count(0), '0');
});

test('durations have the unit that can be read', () => {
  const said = [12, 1000, 3440, 9949, 12_000, 61_000, 303_000, 7_800_000, 90_000_000].map(format.duration);
  assert.deepEqual(said, ['12 ms', '1 s', '3.4 s', '9.9 s', '12 s', '1 min 1 s', '5 min 3 s', '2 h 10 min', '1 d 1 h']);
});

test('numbers', () => {
  assert.equal(format.count(1234567), '1,234,567');
  assert.equal(format.brief(9999), '9,999');
  assert.equal(format.brief(1234567), '1.2M');
  assert.equal(format.brief(3.44), '3.4');
  assert.deepEqual([0, 45, 3.44, 0.5, 0.05, 0.001].map(format.rate), ['0/s', '45/s', '3.4/s', '0.5/s', '3/min', '4/h']);
  assert.deepEqual([0, 0.004, 0.5, 1].map(format.percent), ['0 %', '0.4 %', '50 %', '100 %']);
});

test('text cannot turn the direction of what is beside it', () => {
  assert.equal(format.cut('a\u202eb\n  c'), 'a\\u202eb c');
  assert.equal(format.cut('x'.repeat(100), 10), `${'x'.repeat(9)}…`);
});

test('only what is in an argument is looked for', () => {
  const argument = { to: 'acme', raw: { $bin: 'AAE=' }, at: { $time: '2026-01-31T12:00:00Z' } };
  assert.deepEqual(format.termsOf(argument), ['to:acme']);
});
