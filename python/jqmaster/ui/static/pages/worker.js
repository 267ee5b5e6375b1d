// One worker: what it is, what it runs and for how long, what it lost.
import { api, path } from '../api.js';
import { Button, Empty, Head, Loaded } from '../components/parts.js';
import { Table } from '../components/rows.js';
import { Ago } from '../components/time.js';
import { act } from '../components/toast.js';
import { count, cut, duration, jobs as inJobs, moment, now } from '../format.js';
import { withQuery } from '../router.js';
import { html, Link, useData, useRef } from '../view.js';
import { Actions, LOOKED_AT, learnUsual, Queues, runningJobs, Slots, State, Stuck, takeJobs } from '../workers.js';

const SHOWN = 100;
const UNLISTED_MS = 60000;

/** One that is listed nowhere, as the jobs tell it that it runs. */
function unlisted(id, found) {
  const own = [...found.values()].filter((job) => job.worker_id === id);
  own.sort((a, b) => a.started_ms - b.started_ms);
  const running = own.map((job) => [job.id, job.started_ms]);
  return { id, name: id, state: own.length ? 'pulling' : '', running, held: own.length, queues: [] };
}

/** → {worker, isListed, found}. `seen`: of the look before; who is listed nowhere is asked for now and then only. */
async function look(id, seen, signal) {
  const { found } = await runningJobs(signal);
  await learnUsual(found, signal);
  const own = unlisted(id, found);
  if (!own.held || seen.isListed || now() - seen.askedMs > UNLISTED_MS) {
    seen.askedMs = now();
    try {
      const worker = await api.get(path`/worker/${id}`, {}, { signal });
      seen.isListed = true;
      return { worker, isListed: true, found };
    } catch (problem) {
      if (problem.status !== 404) throw problem;
      seen.isListed = false;
    }
  }
  return { worker: own, isListed: false, found };
}

function Facts({ of: worker, isListed }) {
  const pairs = [
    ['Id', worker.id === worker.name ? null : html`<code>${worker.id}</code>`],
    [
      'Host',
      worker.host && html`${worker.host}${worker.pid && html`<span class="muted"> · process ${worker.pid}</span>`}`,
    ],
    ['Version', worker.version],
    ['Pushed to', worker.url && html`<code>${worker.url}</code>`],
    ['Queues', worker.queues.length ? html`<${Queues} of=${worker} />` : null],
    ['Jobs it knows', worker.knows?.join(', ')],
    ['Jobs it does not know', worker.refused?.join(', ')],
    ['Slots', isListed ? html`<${Slots} of=${worker} />` : worker.held && `runs ${inJobs(worker.held)}`],
    ['Here since', worker.since_ms && html`${moment(worker.since_ms)} (<${Ago} ms=${worker.since_ms} />)`],
    ['Last sign of life', worker.seen_ms && html`<${Ago} ms=${worker.seen_ms} />`],
    ['Leases that ran out', worker.lapsed ? html`<b>${count(worker.lapsed)}</b>` : null],
  ];
  return html`<section class="panel" aria-label="About">
    <dl class="facts">${pairs.filter(([, value]) => value).map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value}</dd>`)}</dl>
    ${isListed ? null : html`<${Unlisted} of=${worker} />`}
  </section>`;
}

const Unlisted = ({ of: { name, held } }) =>
  html`<p class="muted">It is not listed: ${
    held
      ? `what it runs was found among the running jobs, of which the first ${count(LOOKED_AT)} are looked at.`
      : `it gave no sign of life for an hour, or never. Among the first ${count(LOOKED_AT)} running jobs there is none of it.`
  } <${Link} to=${withQuery('/jobs', { worker: name })}>Jobs that it had<//></p>`;

function Gone({ lost = [], lapsed }) {
  const told = lost.length ? `${inJobs(lapsed)} lapsed with it or before:` : 'It held no job that is known.';
  return html`<section class="panel" role="status">
    <h2>It is gone</h2>
    <p>It gave no sign of life for too long. ${told}</p>
    ${
      lost.length
        ? html`<p>${lost.map((id, i) => html`${i ? ', ' : ''}<${Link} to=${path`/job/${id}`}><code>${id}</code><//>`)}</p>`
        : null
    }
  </section>`;
}

const columns = (reload) => [
  { title: 'Job', cell: ({ id }) => html`<${Link} to=${path`/job/${id}`}><code>${id}</code><//>` },
  { title: 'Name', kind: 'wide', cell: ({ name }) => (name ? cut(name, 80) : '–') },
  {
    title: 'Queue',
    hide: 'narrow',
    cell: ({ queue }) => (queue ? html`<${Link} to=${path`/queue/${queue}`}>${queue}<//>` : '–'),
  },
  { title: 'Runs for', kind: 'number', cell: (job) => duration(Math.max(0, now() - job.started_ms)) },
  { title: 'Usual?', cell: (job) => html`<${Stuck} job=${job} none=${html`<span class="zero">–</span>`} />` },
  {
    title: '',
    kind: 'actions',
    cell: ({ id }) => html`<${Button} needs="operator" class="small" aria-label=${`Take back ${id}`}
      onClick=${async () => {
        await act(() => api.post(path`/job/${id}/kick`, {}), `${id} waits again.`);
        reload();
      }}>Take back<//>`,
  },
];

export function Page({ params: { name: id } }) {
  const seen = useRef({ askedMs: 0, isListed: true });
  const state = useData((signal) => look(id, seen.current, signal), { ms: 3000, deps: [id] });
  return html`<${Loaded} of=${state}>${({ worker, isListed, found }) => {
    const ids = worker.running.map(([job]) => job);
    const rows = worker.running.slice(0, SHOWN).map(([job, ms]) => ({ ...found.get(job), id: job, started_ms: ms }));
    const take = async () => (await takeJobs(worker, ids)) !== undefined && state.reload();
    const actions = isListed
      ? html`<${Actions} of=${worker} done=${state.reload} size="" />`
      : worker.held && html`<${Button} needs="operator" class="danger" onClick=${take}>Take jobs<//>`;
    const title = html`${worker.name} ${worker.state && html`<${State} of=${worker} />`}`;
    return html`<${Head} title=${title} actions=${actions} />
      ${worker.state === 'gone' ? html`<${Gone} ...${worker} />` : null}
      <${Facts} of=${worker} isListed=${isListed} />
      ${
        isListed || rows.length
          ? html`<h2>Runs</h2>
              <${Table} label="Jobs that it runs" columns=${columns(state.reload)} rows=${rows} rowKey=${(job) => job.id}
                empty=${html`<${Empty}>It runs nothing now.<//>`} />`
          : null
      }`;
  }}<//>`;
}
