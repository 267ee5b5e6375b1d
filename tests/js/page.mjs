// Just so much of a browser that modules which look for their places in the page can be loaded.
const element = () => ({ dataset: {}, addEventListener: () => {}, classList: { toggle: () => {} } });
const of = { getElementById: element, addEventListener: () => {}, hidden: false, body: element() };

/** What an address looks like to the modules; `history` moves it. */
export function open(address) {
  const go = (_state, _title, target) => Object.assign(location, parts(new URL(target, 'http://jq.test')));
  globalThis.location = parts(new URL(address, 'http://jq.test'));
  globalThis.history = { state: null, pushState: go, replaceState: go };
}

const parts = ({ pathname, search, origin }) => ({ pathname, search, origin });

globalThis.document ??= of;
globalThis.addEventListener ??= () => {};
globalThis.setInterval = () => 0; // clocks of the page would keep a test from ending
open('/ui/');
