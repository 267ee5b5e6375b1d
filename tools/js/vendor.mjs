// Writes python/jqmaster/ui/static/vendor/: each library as one module, since a page without inline scripts can have no
// import map. `node tools/js/vendor.mjs [folder]`, after `npm install` in tools/js.
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const packages = join(here, 'node_modules');
const to = process.argv[2] || join(here, '../../python/jqmaster/ui/static/vendor');
const { devDependencies: versions } = JSON.parse(await readFile(join(here, 'package.json'), 'utf8'));

const VIEW = `
export { Component, Fragment, h, options, render } from 'preact';
export { useCallback, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks';
export { default as htm } from 'htm';
`;
const MODULES = {
  'preact.js': { packages: ['preact', 'htm'], stdin: { contents: VIEW, resolveDir: here } },
  'uplot.js': { packages: ['uplot'], stdin: { contents: "export { default } from 'uplot';", resolveDir: here } },
};

await mkdir(to, { recursive: true });
let licences = 'The files beside this one are copies of these packages, bundled by tools/js/vendor.mjs.\n';
for (const [name, { packages: names, stdin }] of Object.entries(MODULES)) {
  const titles = names.map((one) => `${one} ${versions[one]}`);
  await build({
    stdin,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    legalComments: 'none',
    banner: { js: `/* ${titles.join(', ')}; see LICENSES.txt */` },
    outfile: join(to, name),
    logLevel: 'error',
  });
  for (const [i, one] of names.entries())
    licences += `\n## ${titles[i]}\n\n${(await readFile(join(packages, one, 'LICENSE'), 'utf8')).trim()}\n`;
}
await copyFile(join(packages, 'uplot/dist/uPlot.min.css'), join(to, 'uplot.css'));
await writeFile(join(to, 'LICENSES.txt'), licences);
