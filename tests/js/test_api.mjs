import assert from 'node:assert/strict';
import { test } from 'node:test';
import './page.mjs';

const { nameOf, parse, path, stringify } = await import('../../python/jqmaster/ui/static/api.js');

test('a name is one segment, whatever is in it', () => {
  assert.equal(path`/queue/${'a/b c'}/pause`, '/queue/a%2Fb%20c/pause');
  assert.equal(path`/queue/${'.'}`, '/queue/~.');
  assert.equal(path`/constraint/${'..'}/usage`, '/constraint/~../usage');
  assert.equal(path`/queue/${'~.'}`, '/queue/~~.');
  assert.equal(path`/queue/${'...'}`, '/queue/...');
  const names = ['.', '..', '~.', '~~..', '~', '~a', 'a/b', '%2E', 'ü ?#', '...', '𝒳'];
  for (const name of names) {
    const whole = path`/queue/${name}`;
    assert.equal(nameOf(whole.slice('/queue/'.length)), name);
    // As a browser takes it, which must not step up.
    assert.equal(new URL(whole, 'http://jq.test').pathname, whole);
  }
  assert.equal(new Set(names.map((name) => path`${name}`)).size, names.length);
  assert.throws(() => nameOf('%zz'));
});

test('integers keep all 64 bits', () => {
  assert.equal(parse('{"a": 9007199254740991}').a, 9007199254740991);
  const read = parse('{"a": [9223372036854775807, -9223372036854775808, 1.5, 12345678901234567890.5]}').a;
  if (typeof JSON.rawJSON === 'function') {
    assert.deepEqual(read.slice(0, 3), [9223372036854775807n, -9223372036854775808n, 1.5]);
    assert.equal(stringify(read.slice(0, 2)), '[9223372036854775807,-9223372036854775808]');
  } else {
    assert.equal(read[2], 1.5); // a browser that does not tell the source rounds
  }
  assert.equal(typeof read[3], 'number');
  assert.equal(parse('"1234567890123456789"'), '1234567890123456789');
});
