// Elements without markup: what comes from outside is only ever a text node or an attribute's value.
// Attributes that are never set from data: they would run as code, or are refused by the page's policy.
const REFUSED = /^(on|style$|srcdoc$|innerhtml$|outerhtml$)/i;
export const SAFE_URL = /^(\/(?!\/)|#|\?)/;

function set(element, name, value) {
  if (name === 'on') {
    for (const [type, listener] of Object.entries(value)) element.addEventListener(type, listener);
  } else if (name === 'data') {
    for (const [key, text] of Object.entries(value)) element.dataset[key] = text;
  } else if (
    name === 'value' ||
    name === 'checked' ||
    name === 'disabled' ||
    name === 'open' ||
    name === 'hidden' ||
    name === 'selected' ||
    name === 'indeterminate' ||
    name === 'required'
  ) {
    element[name] = value;
  } else if (REFUSED.test(name)) {
    throw new Error(`not to be set: ${name}`);
  } else if (value === true) {
    element.setAttribute(name, '');
  } else if (value !== false && value !== null && value !== undefined) {
    // Links lead nowhere but to this server: a job's text must not become a javascript: address.
    if ((name === 'href' || name === 'src') && !SAFE_URL.test(String(value))) throw new Error(`not a path: ${value}`);
    element.setAttribute(name, String(value));
  }
}

function append(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child instanceof Node) element.append(child);
    else if (child !== null && child !== undefined && child !== false && child !== '') {
      element.append(document.createTextNode(String(child)));
    }
  }
  return element;
}

/** h('p', {class: 'muted', on: {click}}, 'text', element, [more]) */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) set(element, name, value);
  return append(element, children);
}

/** What is in `element` goes, `children` come. */
export function fill(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

export function button(label, onClick, attributes = {}) {
  return h('button', { type: 'button', ...attributes, on: { click: onClick } }, label);
}

/** Runs after the element has been out of use for a while: for input as it is typed. */
export function debounced(action, ms = 250) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), ms);
  };
}
