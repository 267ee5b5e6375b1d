// A form for one job: name and argument, all else folded away. With ?as=<id> it begins as that job did.
import { api, path, readJob, stringify } from './api.js';
import { FIELDS } from './fields.js';
import { cut } from './format.js';
import { toast, useForm } from './forms.js';
import { names, queues, tags } from './names.js';
import { Head, Loaded } from './parts.js';
import { html, Link, useData, useEffect, useQuery, useRef, useState } from './view.js';

/** What the form begins with: of a job, or of the address. */
async function beginning({ as, argument, ...given }) {
  if (!as) return { ...given, text: argument };
  const job = await api.get(path`/job/${as}`, {}, { read: readJob });
  const values = { as, name: job.name, queue: job.queue === job.name ? '' : job.queue, argument: job.argument };
  for (const { name, kind, usual, again } of FIELDS) {
    const value = job[name];
    if (again && (value ?? null) !== null && value !== usual) values[name] = kind === 'boolean' ? '1' : value;
  }
  return values;
}

const token = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');

/** made({id, name, isNew}): it was enqueued. */
function Form({ begin, made }) {
  const [name, queue, argument] = [
    { name: 'name', label: 'Name', required: true, suggest: names, hint: 'The kind of job, by which workers know it.' },
    { name: 'queue', label: 'Queue', placeholder: 'as its name', suggest: queues },
    {
      name: 'argument',
      label: 'Argument',
      type: 'json',
      rows: 10,
      placeholder: 'null',
      hint: 'JSON; empty is null. What JSON lacks: {"$bin": base64}, and so on.',
    },
  ].map((spec) => ({ ...spec, value: begin[spec.name] }));
  argument.text = begin.text;
  const options = FIELDS.map((spec) => ({
    ...spec,
    value: begin[spec.name],
    suggest: spec.name === 'tags' ? tags : undefined,
  }));
  // The same form sent twice is one job, also when the first answer was lost; a changed one is another.
  const request = useRef({ text: '', token: '' });
  const form = useForm([name, queue, argument, ...options], async (job) => {
    for (const { name: one, kind } of FIELDS) if (kind === 'boolean' && job[one]) job[one] = true;
    const text = stringify(job);
    if (request.current.text !== text) request.current = { text, token: token() };
    const answer = await api.post('/jobs', { jobs: [job], request: request.current.token }).catch((problem) => {
      throw Object.assign(problem, { field: problem.field?.replace(/^jobs\[0\]\.?/, '') });
    });
    request.current = { text: '', token: '' };
    const [id] = answer.job_ids;
    const isNew = answer.created[0];
    made({ id, name: job.name, isNew });
    toast(isNew ? `Enqueued as ${id}.` : `Nothing new: ${id} has this key.`);
  });
  // As in other forms where one types much.
  const onKey = (event) => event.key === 'Enter' && (event.ctrlKey || event.metaKey) && form.send(event);
  return html`<form class="panel enqueue" novalidate ref=${form.place} onSubmit=${form.send} onKeyDown=${onKey}>
    ${
      begin.as
        ? html`<p class="muted">As <${Link} to=${path`/job/${begin.as}`}>${begin.as}<//> was. It is a new job: that one stays as it is.
            ${begin.unique ? 'It has a unique key: if that is still taken, nothing is enqueued.' : ''}</p>`
        : null
    }
    <div class="pair">${form.view(name, !begin.name)}${form.view(queue)}</div>
    ${form.view(argument)}
    <details class="more" open=${FIELDS.some((spec) => begin[spec.name] !== undefined)}><summary>Options</summary>
      <div class="option-grid">${options.map((spec) => form.view(spec))}</div></details>
    ${form.problem}
    <div class="buttons"><button type="submit" class="primary" disabled=${form.isBusy}>Enqueue</button></div></form>`;
}

function Enqueued({ jobs }) {
  const place = useRef(null);
  useEffect(() => place.current.querySelector('a').focus(), [jobs]);
  const line = ({ id, name, isNew }) =>
    html`<li><${Link} to=${path`/job/${id}`}>${cut(name, 60)} ${id}<//>${
      isNew ? null : html`<span class="muted"> was there already: its key is taken</span>`
    }</li>`;
  return html`<section class="panel" aria-label="Enqueued"><h2>Enqueued</h2><ul class="sample" ref=${place}>${jobs.map(line)}</ul></section>`;
}

export function Enqueue() {
  const [{ as = '', name = '', queue = '', argument = '' }] = useQuery();
  const [jobs, setJobs] = useState([]);
  const state = useData(() => beginning({ as, name, queue, argument }), { deps: [as, name, queue, argument] });
  const made = (job) => setJobs((before) => [job, ...before]);
  return html`<${Head} title=${as ? 'Enqueue again' : 'Enqueue a job'} />
    ${jobs.length ? html`<${Enqueued} jobs=${jobs} />` : null}
    <${Loaded} of=${state}>${(begin) => html`<${Form} key=${begin.as} begin=${begin} made=${made} />`}<//>`;
}
