// A value of any depth as a tree: what is closed is not built, long texts and lists come in parts.
import { stringify } from './api.js';
import { straight } from './format.js';
import { html, useState } from './view.js';

const PART = 100;
const LONG = 400;

/** Several lines, such as a traceback, as lines; else in quotes. */
function Text({ value }) {
  const [isWhole, setWhole] = useState(false);
  const isLines = value.trim().includes('\n');
  const most = isLines ? LONG * 5 : LONG;
  const shown = isWhole ? value : value.slice(0, most);
  return html`<span class=${isLines ? 'j-text j-lines' : 'j-text'}>${straight(isLines ? shown.replace(/\n$/, '') : JSON.stringify(shown))}</span>${
    shown.length < value.length
      ? html`<button type="button" class="inline" onClick=${() => setWhole(true)}>… ${value.length - most} more characters</button>`
      : null
  }`;
}

/** What JSON lacks: {$bin: …}, {$time: …} and {$msgpack: …} (see the API's description). */
function special(value) {
  const [[name, content] = [], ...more] = Object.entries(value);
  if (more.length) return null;
  if (name === '$bin' && typeof content === 'string') {
    const size = (content.length / 4) * 3 - content.match(/=*$/)[0].length;
    return `binary, ${size} bytes, base64: ${content.slice(0, 60)}${content.length > 60 ? '…' : ''}`;
  }
  if (name === '$time' && typeof content === 'string') return content;
  if (name === '$msgpack') return `MessagePack, base64: ${String(content).slice(0, 60)}`;
  return null;
}

function Branch({ value, name, depth }) {
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  const [isOpen, setOpen] = useState(depth < 2 && entries.length <= 20);
  const [shown, setShown] = useState(PART);
  if (!entries.length) return html`<div class="j-row">${name}<span class="muted">${isList ? '[]' : '{}'}</span></div>`;
  const more = entries.length - shown;
  return html`<details class="j-branch" open=${isOpen} onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>${name}<span class="muted">${isList ? `[${entries.length}]` : `{${entries.length}}`}</span></summary>
    ${
      isOpen
        ? html`<div class="j-inside">${entries.slice(0, shown).map(([key, item]) => html`<${Node} key=${key} value=${item} name=${key} depth=${depth + 1} />`)}
            ${more > 0 ? html`<button type="button" class="inline" onClick=${() => setShown(shown + PART)}>${more} more</button>` : null}</div>`
        : null
    }</details>`;
}

function Node({ value, name, depth }) {
  const title = name === undefined ? null : html`<span class="j-key">${straight(name)}: </span>`;
  const isInside = value !== null && typeof value === 'object';
  const known = isInside && special(value);
  if (isInside && !known) return html`<${Branch} value=${value} name=${title} depth=${depth} />`;
  const leaf = known
    ? html`<span class="j-none">${known}</span>`
    : typeof value === 'string'
      ? html`<${Text} value=${value} />`
      : html`<span class=${{ number: 'j-number', bigint: 'j-number', boolean: 'j-bool' }[typeof value] || 'j-none'}>${String(value ?? null)}</span>`;
  return html`<div class="j-row">${title}${leaf}</div>`;
}

/** <Tree value=${job.argument} label="Argument" />: with a switch to the raw JSON, and a button that copies it. */
export function Tree({ value, label }) {
  const [isRaw, setRaw] = useState(false);
  const [copied, setCopied] = useState('Copy');
  const copy = async () => {
    setCopied(
      await navigator.clipboard.writeText(stringify(value, 2)).then(
        () => 'Copied',
        () => 'Not allowed',
      ),
    );
    setTimeout(() => setCopied('Copy'), 1500);
  };
  return html`<div class="json">
    <div class="json-tools"><button type="button" class="quiet small" onClick=${() => setRaw(!isRaw)}>${isRaw ? 'Tree' : 'Raw'}</button>
      <button type="button" class="quiet small" onClick=${copy}>${copied}</button></div>
    ${
      isRaw
        ? html`<pre class="raw" tabindex="0" aria-label=${`${label}, raw`}>${stringify(value, 2)}</pre>`
        : html`<div class="j-tree" role="group" aria-label=${label}><${Node} value=${value} depth=${0} /></div>`
    }</div>`;
}
