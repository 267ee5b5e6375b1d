// A form for one job: name and argument, all else folded away. With ?from=<id> it begins as that job did.
import { api, path, stringify } from '../api.js';
import { field, read, saidAt } from '../components/field.js';
import { toast } from '../components/toast.js';
import { button, debounced, h } from '../dom.js';
import { cut } from '../format.js';
import { exactJob } from '../jobs/exact.js';
import { exactParse, jsonProblem } from '../jobs/jsontext.js';
import { completed, names, queues, tags } from '../jobs/suggest.js';
import { link, query } from '../router.js';

const YES = [
  ['', 'usual'],
  ['1', 'yes'],
];
// Name, label, type, hint and more: as of field.js.
const OPTIONS = [
  { name: 'priority', label: 'Priority', type: 'number', hint: 'The smaller runs first; usual: 0.' },
  { name: 'delay', label: 'Not before', unit: 's from now', type: 'number' },
  { name: 'run_at', label: 'or not before the moment', type: 'datetime' },
  {
    name: 'expires_in',
    label: 'Expires in',
    unit: 's',
    type: 'number',
    hint: 'Not started by then, it ends as error.',
  },
  { name: 'max_retry', label: 'Retries', type: 'number', hint: 'Usual: 10.' },
  { name: 'timeout', label: 'Lease', unit: 's', type: 'number', hint: 'How long a worker may be silent; usual: 30.' },
  { name: 'max_runtime', label: 'Runs at most', unit: 's', type: 'number' },
  { name: 'keep_result', label: 'Keep the result', type: 'select', options: YES, value: '' },
  { name: 'tags', label: 'Tags', type: 'list', hint: 'With commas between.' },
  { name: 'unique', label: 'Unique key', hint: 'While a job with this key has not ended, no other is made.' },
  { name: 'unique_for', label: 'Keep the key after the end', unit: 's', type: 'number' },
  {
    name: 'if_exists',
    label: 'If the key is taken',
    type: 'select',
    options: [
      ['', 'keep that job (usual)'],
      ['replace', 'replace its argument'],
      ['latest', 'this one runs last'],
    ],
    value: '',
  },
  { name: 'depends', label: 'Waits for the jobs', type: 'list', hint: 'Ids, with commas between.' },
  {
    name: 'if_failed',
    label: 'If one of them fails',
    type: 'select',
    options: [
      ['', 'wait on (usual)'],
      ['fail', 'fail as well'],
      ['run', 'run all the same'],
    ],
    value: '',
  },
  { name: 'retry_base', label: 'First backoff', unit: 's', type: 'number' },
  { name: 'retry_cap', label: 'Longest backoff', unit: 's', type: 'number' },
  { name: 'retry_jitter', label: 'Jitter of backoff', type: 'number', hint: '0 to 1.' },
  { name: 'track', label: 'Publish its transitions', type: 'select', options: YES, value: '' },
  { name: 'headers', label: 'Headers', type: 'json', rows: 2, hint: 'A map of texts, as JSON.' },
];
const COPIED = [
  'priority',
  'max_retry',
  'timeout',
  'max_runtime',
  'keep_result',
  'tags',
  'unique',
  'unique_for',
  'retry_base',
  'retry_cap',
  'retry_jitter',
  'headers',
];
const USUAL = { priority: 0, max_retry: 10, timeout: 30, keep_result: false };

/** What the form begins with: of a job, or of the address. */
async function beginning() {
  const { from, name = '', queue = '', ...rest } = query();
  if (!from) return { name, queue, argument: rest.argument || '' };
  const { job, argument } = await exactJob(from);
  const values = { from, name: job.name, queue: job.queue === job.name ? '' : job.queue, argument };
  for (const one of COPIED)
    if (job[one] !== undefined && job[one] !== null && job[one] !== USUAL[one]) values[one] = job[one];
  if (values.keep_result) values.keep_result = '1';
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

export async function render(view) {
  const begin = await beginning();
  const name = field({
    name: 'name',
    label: 'Name',
    required: true,
    value: begin.name,
    hint: 'Which kind of job it is: what workers know it by.',
  });
  const queue = field({ name: 'queue', label: 'Queue', value: begin.queue, placeholder: 'as its name' });
  const argument = argumentField(begin.argument);
  const options = OPTIONS.map((spec) => field({ ...spec, value: begin[spec.name] ?? spec.value }));
  const isUsed = OPTIONS.some((spec) => begin[spec.name] !== undefined);
  const fields = [name, queue, ...options];
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const done = h('ul', { class: 'sample' });
  const made = h('section', { class: 'panel', hidden: true, 'aria-label': 'Enqueued' }, h('h2', {}, 'Enqueued'), done);
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
    begin.from &&
    h(
      'p',
      { class: 'muted' },
      'As ',
      link(path`/job/${begin.from}`, begin.from),
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
      for (const one of ['keep_result', 'track']) if (job[one]) job[one] = true;
      const value = argument.exact();
      if (value !== undefined) job.argument = value;
      const text = stringify(job);
      if (request.text !== text) request = { text, token: token() };
      const answer = await api.post('/jobs', { jobs: [job], request: request.token });
      request = { text: '', token: '' };
      const [id] = answer.job_ids;
      const isNew = answer.created[0];
      made.hidden = false;
      done.prepend(
        h(
          'li',
          {},
          link(path`/job/${id}`, `${cut(job.name, 60)} ${id}`),
          isNew ? '' : h('span', { class: 'muted' }, ' was there already: its key is taken'),
        ),
      );
      toast(isNew ? `Enqueued as ${id}.` : `Nothing new: ${id} has this key.`);
      done.querySelector('a').focus();
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
  view.append(h('div', { class: 'head' }, h('h1', {}, begin.from ? 'Enqueue again' : 'Enqueue a job')), made, form);
  completed(name.input, names);
  completed(queue.input, queues);
  completed(options.find((one) => one.name === 'tags').input, tags);
  name.input.setAttribute('data-filter', '1');
  if (!begin.name) name.focus();
}
