import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from './page.mjs';

const { withQuery } = await import('../../python/jqmaster/ui/static/api.js');
const { carried, match, query, setQuery } = await import('../../python/jqmaster/ui/static/view.js');
const pages = [{ path: '/' }, { path: '/queues' }, { path: '/queue/:name' }, { path: '/job/:id' }];

test('an address names a page and what it is about', () => {
  assert.deepEqual(match(pages, '/ui/'), { page: pages[0], params: {} });
  assert.equal(match(pages, '/ui').page, pages[0]);
  assert.equal(match(pages, '/ui/queues/').page, pages[1]);
  assert.deepEqual(match(pages, '/ui/queue/a%2Fb').params, { name: 'a/b' });
  assert.deepEqual(match(pages, '/ui/queue/~..').params, { name: '..' });
  assert.deepEqual(match(pages, '/ui/queue/~~.').params, { name: '~.' });
  assert.equal(match(pages, '/ui/queue/a/b'), null);
  assert.equal(match(pages, '/ui/queue/%zz'), null);
  assert.equal(match(pages, '/ui/nothing'), null);
});

test('filters stand in the query; empty ones go', () => {
  open('/ui/jobs?queue=a%26b&range=6h');
  assert.deepEqual(query(), { queue: 'a&b', range: '6h' });
  setQuery({ queue: '', status: 'error', all: true, none: false });
  assert.equal(location.search, '?range=6h&status=error&all=1');
  setQuery({ range: null, status: undefined, all: '' });
  assert.equal(location.pathname + location.search, '/ui/jobs');
  assert.equal(withQuery('/jobs', { queue: 'a b', tag: '', name: null }), '/jobs?queue=a+b');
  assert.equal(withQuery('/jobs', {}), '/jobs');
});

test('the time range goes along, unless the link has its own', () => {
  open('/ui/?range=6h&queue=a');
  assert.equal(carried('/queues'), '/queues?range=6h');
  assert.equal(carried('/jobs?queue=b'), '/jobs?queue=b&range=6h');
  assert.equal(carried('/jobs?from=1&to=2'), '/jobs?from=1&to=2');
  open('/ui/');
  assert.equal(carried('/queues'), '/queues');
});
