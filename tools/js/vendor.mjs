// Writes python/jqmaster/ui/static/vendor/: the libraries as one module, since a page without inline scripts can have no
// import map. `node tools/js/vendor.mjs [folder]`, after `npm install` in tools/js.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const packages = join(here, 'node_modules');
const to = process.argv[2] || join(here, '../../python/jqmaster/ui/static/vendor');
const { devDependencies: versions } = JSON.parse(await readFile(join(here, 'package.json'), 'utf8'));

const CONTENTS = `
export { Component, h, options, render } from 'preact';
export { useEffect, useRef, useState } from 'preact/hooks';
export { default as htm } from 'htm';
export { default as uPlot } from 'uplot';
`;
const NAMES = ['preact', 'htm', 'uplot'];
const TITLES = NAMES.map((name) => `${name} ${versions[name]}`);

await mkdir(to, { recursive: true });
await build({
  stdin: { contents: CONTENTS, resolveDir: here },
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  legalComments: 'none',
  banner: { js: `/* ${TITLES.join(', ')}; see LICENSES.txt */` },
  outfile: join(to, 'libraries.js'),
  logLevel: 'error',
});
let licences = 'The file beside this one is a copy of these packages, bundled by tools/js/vendor.mjs.\n';
for (const [i, name] of NAMES.entries())
  licences += `\n## ${TITLES[i]}\n\n${(await readFile(join(packages, name, 'LICENSE'), 'utf8')).trim()}\n`;
await writeFile(join(to, 'LICENSES.txt'), licences);
