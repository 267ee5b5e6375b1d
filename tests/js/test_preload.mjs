// The page names all modules that every page needs, so that they come in one go.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

const UI = new URL('../../python/jqmaster/ui/', import.meta.url);
const IMPORTS = /^(?:import|export)\s(?:[^;]*?\sfrom\s)?'(\.[^']+)'/gm;

function needed(file, found = new Set()) {
  if (found.has(file.href)) return found;
  found.add(file.href);
  for (const [, target] of readFileSync(file, 'utf8').matchAll(IMPORTS)) needed(new URL(target, file), found);
  return found;
}

test('what all pages need is loaded beforehand, and nothing else', () => {
  const links = readFileSync(new URL('index.html', UI), 'utf8').matchAll(/modulepreload" href="\/ui\/([^"]+)"/g);
  const app = new URL('static/app.js', UI);
  const parts = new URL('static/parts.js', UI); // of the pages
  const wanted = needed(parts, needed(app));
  wanted.delete(app.href);
  assert.deepEqual([...links].map(([, path]) => new URL(path, UI).href).sort(), [...wanted].sort());
});
