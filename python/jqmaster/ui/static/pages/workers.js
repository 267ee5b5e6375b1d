// All workers: what each runs and for how long, its slots and last sign of life; the dead of the last hour.
import { api, path } from '../api.js';
import { Empty, Head, Loaded } from '../components/parts.js';
import { Pager, Table, usePages } from '../components/rows.js';
import { Ago } from '../components/time.js';
import { count, cut, jobs as inJobs } from '../format.js';
import { withQuery } from '../router.js';
import { html, Link, useData } from '../view.js';
import { Actions, LOOKED_AT, learnUsual, Queues, runningJobs, Slots, State, Stuck } from '../workers.js';

const SHOWN = 3;
const NAMES = 20;

const none = (text) => html`<span class="zero">${text}</span>`;

function Runs({ of, found }) {
  if (of.state === 'gone') return none(of.lost?.length ? `lost ${inJobs(of.lapsed)}` : 'gone');
  if (!of.running.length) return none('nothing');
  const more = of.held - SHOWN;
  return html`${of.running.slice(0, SHOWN).map(([id, startedMs]) => {
    const job = found.get(id);
    return html`<div key=${id}>
      <${Link} to=${path`/job/${id}`}>${job?.name ? cut(job.name, 40) : html`<code>${id}</code>`}<//>
      <span class="muted nowrap"> <${Ago} ms=${startedMs} /></span> <${Stuck} job=${job} />
    </div>`;
  })}${more > 0 ? html`<${Link} to=${path`/worker/${of.id}`}>${count(more)} more<//>` : null}`;
}

/** Who runs jobs and is not listed: [[name, {jobs, queues, since}], …], the busiest first. */
function unlisted(found, listed) {
  const others = new Map();
  for (const job of found.values()) {
    if (!job.worker_id || listed.has(job.worker_id) || /^w[0-9a-f]{14}(?:[0-9a-f]{2})?$/.test(job.worker_id)) continue;
    const one = others.get(job.worker_id) || { jobs: 0, queues: new Set(), since: Infinity };
    one.jobs += 1;
    one.queues.add(job.queue);
    one.since = Math.min(one.since, job.started_ms);
    others.set(job.worker_id, one);
  }
  return [...others].sort(([, a], [, b]) => b.jobs - a.jobs);
}

function Unlisted({ found, isAll, listed }) {
  const others = unlisted(found, listed);
  if (!others.length) return null;
  const more = others.length > NAMES ? `${count(others.length - NAMES)} more of them run jobs. ` : '';
  const least = isAll ? '' : `Found among ${count(LOOKED_AT)} running jobs at most; there are more.`;
  return html`<section class="panel" aria-label="Not listed">
    <h2>Not listed, but run jobs</h2>
    <ul class="sample">${others.slice(0, NAMES).map(([name, { jobs, queues, since }]) => {
      const named = [...queues].slice(0, SHOWN);
      return html`<li key=${name}><b><${Link} to=${path`/worker/${name}`}>${cut(name, 120)}<//></b> runs ${inJobs(jobs)} of ${named.map(
        (queue, i) =>
          html`${i ? ', ' : ''}<${Link} to=${withQuery('/jobs', { status: 'running', queue })}>${cut(queue, 80)}<//>`,
      )}${queues.size > SHOWN ? ` and ${count(queues.size - SHOWN)} more` : ''}<span class="muted">, the oldest started <${Ago} ms=${since} /></span>
      </li>`;
    })}</ul>
    ${more || least ? html`<p class="muted">${more}${least}</p>` : null}
  </section>`;
}

// A page of registered workers, then pages of the others: cursors of the others begin with this.
const OTHERS = 'others ';

async function page(cursor, signal) {
  const isOthers = cursor.startsWith(OTHERS);
  const [from, more] = isOthers ? [cursor.slice(OTHERS.length), { others: 1 }] : [cursor, {}];
  const { workers, cursor: next } = await api.get('/workers', { cursor: from, count: 50, ...more }, { signal });
  if (isOthers) return { rows: workers, cursor: next && OTHERS + next };
  if (next) return { rows: workers, cursor: next };
  // The first of the others stand on the same page.
  const rest = await page(OTHERS, signal);
  return { rows: [...workers, ...rest.rows], cursor: rest.cursor };
}

const isGone = (worker) => worker.state === 'gone';

const place = ({ host, pid, id, name }) =>
  host
    ? html`<div class="muted">${host}${pid ? ` · ${pid}` : ''}</div>`
    : id !== name && html`<div><code class="muted">${id}</code></div>`;

const columns = (found, reload) => [
  {
    title: 'Worker',
    kind: 'wide',
    cell: (worker) => html`<${Link} to=${path`/worker/${worker.id}`}>${worker.name}<//>${place(worker)}`,
  },
  { title: 'State', cell: (worker) => html`<${State} of=${worker} />` },
  { title: 'Slots', cell: (worker) => html`<${Slots} of=${worker} />` },
  { title: 'Runs, the longest first', cell: (worker) => html`<${Runs} of=${worker} found=${found} />` },
  { title: 'Sign of life', cell: (worker) => html`<${Ago} ms=${worker.seen_ms} />` },
  { title: 'Queues', kind: 'wide', hide: 'narrow', cell: (worker) => html`<${Queues} of=${worker} />` },
  {
    title: 'Version',
    hide: 'tight',
    cell: (worker) => html`<span class="muted nowrap">${worker.version ?? '–'}</span>`,
  },
  {
    title: 'Lapsed',
    kind: 'number',
    hide: 'tight',
    tip: 'Attempts whose lease ran out',
    cell: ({ lapsed }) => (lapsed ? html`<b>${count(lapsed)}</b>` : none('0')),
  },
  { title: '', kind: 'actions', cell: (worker) => html`<${Actions} of=${worker} done=${reload} />` },
];

/** What runs, and what is usual for it. */
async function look(signal) {
  const running = await runningJobs(signal);
  await learnUsual(running.found, signal);
  return running;
}

export function Page() {
  const { pager, ...state } = usePages(page, { ms: 3000 });
  const { data: { found, isAll } = { found: new Map(), isAll: true } } = useData(look, { ms: 10000 });
  return html`<${Head} title="Workers" />
    <p class="muted">Those that jobs are pushed to or that were started with <code>--register</code> can be asked to be quiet or to
      stop. Others that pull say every minute that they are here. Dead ones stay for an hour.</p>
    <${Loaded} of=${state}>${({ rows, cursor }) => {
      const sorted = [...rows].sort((a, b) => isGone(a) - isGone(b));
      const empty = html`<${Empty} command="jqmaster work my_module:jq">No worker is here. Start one with your jobs:<//>`;
      return html`<${Table} label="Workers" columns=${columns(found, state.reload)} rows=${sorted} rowKey=${(worker) => worker.id}
          empty=${pager.back || cursor ? null : empty}>
          <${Pager} of=${pager} />
        <//>
        <${Unlisted} found=${found} isAll=${isAll} listed=${new Set(rows.map((worker) => worker.id))} />`;
    }}<//>`;
}
