// A form for one job: name and argument, all else folded away. With ?as=<id> it begins as that job did.
import { api, path, stringify } from '../api.js';
import { field, read, saidAt } from '../components/field.js';
import { Head, Loaded } from '../components/parts.js';
import { toast } from '../components/toast.js';
import { button, debounced, h } from '../dom.js';
import { cut } from '../format.js';
import { exactJob } from '../jobs/exact.js';
import { FIELDS } from '../jobs/fields.js';
import { exactParse, jsonProblem } from '../jobs/jsontext.js';
import { completed, names, queues, tags } from '../jobs/suggest.js';
import { link } from '../router.js';
import { Dom, html, Link, useData, useEffect, useQuery, useRef, useState } from '../view.js';

/** What the form begins with: of a job, or of the address. */
async function beginning({ as, ...given }) {
  if (!as) return given;
  const { job, argument } = await exactJob(as);
  const values = { as, name: job.name, queue: job.queue === job.name ? '' : job.queue, argument };
  for (const { name: one, kind, usual, again } of FIELDS) {
    const value = job[one];
    if (again && value !== undefined && value !== null && value !== usual)
      values[one] = kind === 'boolean' ? '1' : value;
  }
  return values;
}

/** The field for the argument: says where it is wrong while one types. */
function argumentField(text) {
  const one = field({
    name: 'argument',
    label: 'Argument',
    rows: 10,
    value: text,
    placeholder: 'null',
    hint: 'JSON; empty is null. What JSON lacks: {"$bin": base64}, and so on.',
  });
  one.input.classList.add('code');
  one.input.spellcheck = false;
  const go = button(
    'Go there',
    () => {
      const problem = jsonProblem(one.input.value);
      one.input.focus();
      if (problem) one.input.setSelectionRange(problem.at, Math.min(problem.at + 1, one.input.value.length));
    },
    { class: 'inline', hidden: true },
  );
  one.element.append(go);
  function check() {
    const problem = one.input.value.trim() ? jsonProblem(one.input.value) : null;
    one.setProblem(problem ? `Line ${problem.line}, column ${problem.column}: ${problem.message}` : '');
    go.hidden = !problem;
    return !problem;
  }
  one.input.addEventListener('input', debounced(check, 400));
  const format = button(
    'Tidy up',
    () => {
      if (check() && one.input.value.trim()) one.input.value = JSON.stringify(exactParse(one.input.value), null, 2);
    },
    { class: 'quiet small' },
  );
  one.element.querySelector('label').after(h('div', { class: 'json-tools' }, format));
  return { ...one, check, exact: () => (one.input.value.trim() ? exactParse(one.input.value) : undefined) };
}

const token = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');

/** The form, made once: no look at anything makes what was typed go. made({id, name, isNew}): it was enqueued. */
function formOf(begin, made) {
  const name = field({
    name: 'name',
    label: 'Name',
    required: true,
    value: begin.name,
    hint: 'Which kind of job it is: what workers know it by.',
  });
  const queue = field({ name: 'queue', label: 'Queue', value: begin.queue, placeholder: 'as its name' });
  const argument = argumentField(begin.argument);
  const options = FIELDS.map((spec) => field({ ...spec, value: begin[spec.name] }));
  const isUsed = FIELDS.some((spec) => begin[spec.name] !== undefined);
  const fields = [name, queue, ...options];
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const send = h('button', { type: 'submit', class: 'primary' }, 'Enqueue');
  const more = h(
    'details',
    { open: isUsed, class: 'more' },
    h('summary', {}, 'Options'),
    h(
      'div',
      { class: 'option-grid' },
      options.map((one) => one.element),
    ),
  );
  const before =
    begin.as &&
    h(
      'p',
      { class: 'muted' },
      'As ',
      link(path`/job/${begin.as}`, begin.as),
      ' was. It is a new job: that one stays as it is.',
      begin.unique ? ' It has a unique key: if that is still taken, nothing is enqueued.' : '',
    );

  function show(error) {
    const place = (error.field || '').replace(/^jobs\[0\]\.?/, '');
    const at = [...fields, argument].find(
      (one) => place === one.name || place.startsWith(`${one.name}.`) || place.startsWith(`${one.name}[`),
    );
    if (at) {
      if (options.includes(at)) more.open = true;
      at.setProblem(saidAt({ message: error.message, field: place }, at.name));
      at.focus();
    } else {
      problem.textContent = error.message;
      problem.hidden = false;
    }
  }

  // The same form sent twice is one job, also when the first answer was lost; a changed one is another.
  let request = { text: '', token: '' };

  async function submit(event) {
    event.preventDefault();
    if (send.disabled) return;
    problem.hidden = true;
    for (const one of fields) one.setProblem('');
    if (!argument.check()) {
      argument.focus();
      return;
    }
    send.disabled = true;
    try {
      const job = read(fields);
      for (const { name: one, kind } of FIELDS) if (kind === 'boolean' && job[one]) job[one] = true;
      const value = argument.exact();
      if (value !== undefined) job.argument = value;
      const text = stringify(job);
      if (request.text !== text) request = { text, token: token() };
      const answer = await api.post('/jobs', { jobs: [job], request: request.token });
      request = { text: '', token: '' };
      const [id] = answer.job_ids;
      const isNew = answer.created[0];
      made({ id, name: job.name, isNew });
      toast(isNew ? `Enqueued as ${id}.` : `Nothing new: ${id} has this key.`);
    } catch (error) {
      if (!error.code && !error.field) console.error(error);
      show(error);
    } finally {
      send.disabled = false;
    }
  }

  const form = h(
    'form',
    { class: 'panel enqueue', novalidate: true, on: { submit } },
    before,
    h('div', { class: 'pair' }, name.element, queue.element),
    argument.element,
    more,
    problem,
    h('div', { class: 'buttons' }, send),
  );
  // As in other forms where one types much.
  form.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  completed(name.input, names);
  completed(queue.input, queues);
  completed(options.find((one) => one.name === 'tags').input, tags);
  name.input.setAttribute('data-filter', '1');
  // Once it stands in the page.
  if (!begin.name) queueMicrotask(() => name.focus());
  return form;
}

function Enqueued({ jobs }) {
  const place = useRef(null);
  useEffect(() => place.current.querySelector('a').focus(), [jobs]);
  return html`<section class="panel" aria-label="Enqueued"><h2>Enqueued</h2><ul class="sample" ref=${place}>${jobs.map(
    ({ id, name, isNew }) =>
      html`<li><${Link} to=${path`/job/${id}`}>${cut(name, 60)} ${id}<//>${
        isNew ? null : html`<span class="muted"> was there already: its key is taken</span>`
      }</li>`,
  )}</ul></section>`;
}

export function Page() {
  const [{ as = '', name = '', queue = '', argument = '' }] = useQuery();
  const [jobs, setJobs] = useState([]);
  const state = useData(() => beginning({ as, name, queue, argument }), { deps: [as, name, queue, argument] });
  const made = (job) => setJobs((before) => [job, ...before]);
  return html`<${Head} title=${as ? 'Enqueue again' : 'Enqueue a job'} />
    ${jobs.length ? html`<${Enqueued} jobs=${jobs} />` : null}
    <${Loaded} of=${state}>${(begin) => html`<${Dom} make=${() => formOf(begin, made)} deps=${[begin]} />`}<//>`;
}
