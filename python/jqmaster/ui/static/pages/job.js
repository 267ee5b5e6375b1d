// A job: what it is, what became of it, why it waits, and what can be done about it.
import { api, path } from '../api.js';
import { Badge } from '../components/badge.js';
import { confirm } from '../components/dialog.js';
import { Button, Loaded } from '../components/parts.js';
import { Ago } from '../components/time.js';
import { act, failed } from '../components/toast.js';
import { Tree } from '../components/tree.js';
import { count, cut, duration } from '../format.js';
import { setTitle } from '../frame.js';
import { actionOf } from '../jobs/actions.js';
import { Alike } from '../jobs/alike.js';
import { changeForm } from '../jobs/change.js';
import { Fault } from '../jobs/errors.js';
import { Facts } from '../jobs/facts.js';
import { Dependents, dependsOf, Graph, SHOWN } from '../jobs/graph.js';
import { mass } from '../jobs/mass.js';
import { Progress } from '../jobs/progress.js';
import { Timeline } from '../jobs/timeline.js';
import { ENDED, WAITING } from '../jobs/where.js';
import { Why } from '../jobs/why.js';
import { Worker } from '../jobs/worker.js';
import { follow } from '../live.js';
import { may } from '../rights.js';
import { navigate, withQuery } from '../router.js';
import { html, Link, useData, useEffect, useRef } from '../view.js';

const LARGE = 200000; // an argument of so many characters is not fetched again and again

const Section = ({ title, kind = '', children }) =>
  html`<section class=${`panel ${kind}`} aria-label=${title}><h2>${title}</h2>${children}</section>`;

// -- what is known of it ------------------------------------------------------------------------------

/** Of full constraints whether they are in strict order: `explain` does not say so. */
async function lookAtOrder({ constraints = [] }, get) {
  const full = constraints.filter((one) => !one.open && one.concurrency === 1 && one.running);
  await Promise.all(
    full.map(async (one) => {
      one.order = (await get(path`/constraint/${one.id}`).catch(() => ({}))).order;
    }),
  );
}

/** Those it waits for, and those that wait for it, as far as they are shown; what has ended stays as it is. */
async function lookAround(job, others, get) {
  const waiting = (job.dependents || []).slice(0, SHOWN);
  const open = new Set([...(job.waits_for || []), ...waiting]);
  const wanted = [...dependsOf(job).slice(0, SHOWN), ...waiting];
  await Promise.all(
    wanted
      .filter((one) => !ENDED.includes(others.get(one)?.status) || open.has(one))
      .map(async (one) => {
        const nobody = (problem) => (problem.status === 404 ? null : undefined);
        others.set(one, await get(path`/job/${one}`).catch(nobody));
      }),
  );
}

/**
 * Its document, history and explanation: useData's answer. Its transitions are told as they happen, until it has ended;
 * progress and reasons to wait are no transitions: those are asked for.
 */
function useJob(id) {
  const at = path`/job/${id}`;
  const kept = useRef({ others: new Map(), shown: null, begun: 0, ended: 0, changes: 0, read: 0 }).current;
  const state = useData(
    async (signal) => {
      const get = (target) => api.get(target, {}, { signal });
      kept.begun += 1;
      const mine = kept.begun;
      const { changes } = kept;
      const old = kept.read === changes ? kept.shown?.job : null; // one read before the last change is none to keep
      const isKept = old && (WAITING.includes(old.status) || JSON.stringify(old, plain).length > LARGE);
      const job = isKept ? old : await get(at);
      const [history, explanation] = await Promise.all([
        get(`${at}/history`),
        WAITING.includes(job.status) ? get(`${at}/explain`) : null,
        lookAround(job, kept.others, get),
      ]);
      if (explanation) await lookAtOrder(explanation, get);
      // One that began later may have been faster.
      if (mine > kept.ended) Object.assign(kept, { ended: mine, read: changes, shown: { job, history, explanation } });
      return kept.shown;
    },
    { ms: 3000, deps: [id] },
  );
  const changed = () => {
    kept.changes += 1;
    return state.reload();
  };
  const { status } = state.data?.job || {};
  const isFollowed = status && !ENDED.includes(status);
  useEffect(() => {
    if (!isFollowed) return undefined;
    return follow(`${at}/events`, (event) => {
      const { job } = kept.shown;
      if (event.state !== job.status || event.attempt !== job.attempt) changed();
    });
  }, [at, isFollowed]);
  return { state, changed, others: kept.others };
}

const plain = (_key, value) => (typeof value === 'bigint' ? `${value}n` : value);

// -- its parts ----------------------------------------------------------------------------------------

function Actions({ job, changed }) {
  const at = (id) => actionOf(id).states.includes(job.status);
  const one = (id) => async () => {
    const did = await mass(actionOf(id), { ids: [job.id], rows: [job] });
    if (id === 'discard' && did) navigate('/jobs');
    else if (did !== undefined) changed();
  };
  const doing = (ask, said) => async () => (await act(ask, said)) && changed();
  const take = async () => {
    const isSure = await confirm({
      title: 'Take it from its worker?',
      action: 'Take from worker',
      body: 'It waits again and loses no retry. Its worker is told that it has lost it; what it did so far may happen twice.',
    });
    if (isSure) await doing(() => api.post(path`/job/${job.id}/kick`, {}), 'It waits in its queue again.')();
  };
  const change = async () => (await changeForm(job.id).catch(failed)) && changed();
  const retry = doing(() => api.post(path`/job/${job.id}/retry`), 'It is in the queue again.');
  const now = doing(() => api.patch(path`/job/${job.id}`, { delay: 0 }), 'It does not wait for its time any longer.');
  // With keys: the focus goes with a button that goes, it does not move on to another.
  const button = (id, text, onClick, kind) =>
    html`<${Button} key=${id} needs="operator" class=${kind} onClick=${onClick}>${text}<//>`;
  return html`<div class="actions">
    ${at('retry') && button('retry', 'Retry', retry, 'primary')}
    ${at('run') && button('run', 'Run now', now, at('retry') ? '' : 'primary')}
    ${button('change', 'Change…', change)}
    <${Again} key="again" id=${job.id} />
    ${at('kick') && button('kick', 'Take from worker…', take)}
    ${at('cancel') && button('cancel', 'Cancel…', one('cancel'), 'danger')}
    ${at('discard') && button('discard', 'Discard…', one('discard'), 'danger')}
  </div>`;
}

const Again = ({ id }) =>
  may('pusher') && html`<${Link} class="button" to=${withQuery('/enqueue', { as: id })}>Enqueue again…<//>`;

const Top = ({ job, changed }) => html`<div class="head job-head">
  <h1>${cut(job.name, 200)} <${Badge} word=${job.status} /></h1>
  <${Actions} job=${job} changed=${changed} />
  <p class="muted job-line"><code>${job.id}</code> · in <${Link} to=${path`/queue/${job.queue}`}>${cut(job.queue, 80)}<//> · enqueued <${Ago} ms=${job.created_ms} />${
    job.worker_id
      ? html` · ${job.status === 'running' ? 'runs' : 'ran last'} on <${Worker} id=${job.worker_id} />`
      : null
  }${job.started_ms && job.ended_ms ? ` · took ${duration(Math.max(0, job.ended_ms - job.started_ms))}` : ''}${
    job.attempt > 1 ? ` · ${count(job.attempt)} attempts` : ''
  }</p>
</div>`;

function Failure({ job }) {
  const { status, message, error, reason, group } = job;
  if (status === 'done' || (!message && (error === null || error === undefined) && !reason)) return null;
  const text = group && cut(group, 80);
  return html`<section class="panel failure" aria-label="Last failure">
    <h2>${status === 'error' ? 'It failed for good' : 'Last failure'}</h2>
    <p class="problem clip said-all">${message || `reason: ${reason || 'not given'}`}</p>
    <p class="muted">${
      job.retry_count ? `${job.retry_count} of ${job.max_retry + 1} attempts failed` : 'It has begun anew since'
    }${reason && reason !== 'other' ? ` · ${reason}` : ''}${
      group
        ? html` · group ${status === 'error' ? html`<${Link} to=${withQuery('/jobs', { group })}>${text}<//>` : text}`
        : null
    }</p>
    <${Fault} error=${error} />
  </section>`;
}

function Values({ job }) {
  const { argument, result, status } = job;
  const hasResult = result !== null && result !== undefined;
  const nothing = job.keep_result ? 'Nothing, or it is not kept any longer.' : 'Results of this job are not kept.';
  return html`<div class="grid">
    <${Section} title="Argument"><${Tree} value=${argument} label="Argument" /><${Alike} argument=${argument} /><//>
    ${
      hasResult || status === 'done'
        ? html`<${Section} title="Result">${
            hasResult ? html`<${Tree} value=${result} label="Result" />` : html`<p class="muted">${nothing}</p>`
          }<//>`
        : null
    }
  </div>`;
}

function Shown({ known: { job, history, explanation }, others, changed, isGone }) {
  const isSomeReason = explanation && WAITING.includes(explanation.status);
  return html`<${Top} job=${job} changed=${changed} />
    ${isGone ? html`<${Section} title="It is gone"><p>Its record is not there any longer. <${Link} to="/jobs">All jobs<//></p><//>` : null}
    <${Progress} job=${job} isLong />
    ${
      isSomeReason && !isGone
        ? html`<${Section} title="Why it waits"><${Why} explanation=${explanation} job=${job} others=${others} changed=${changed} /><//>`
        : null
    }
    ${job.depends?.length ? html`<${Section} title="What it waits for"><${Graph} job=${job} others=${others} /><//>` : null}
    ${job.dependents ? html`<${Section} title="What waits for it"><${Dependents} ids=${job.dependents} others=${others} /><//>` : null}
    <${Failure} job=${job} />
    <${Values} job=${job} />
    <div class="grid job-grid">
      <${Section} title="What happened"><${Timeline} history=${history} job=${job} explanation=${explanation} /><//>
      <${Section} title="Facts"><${Facts} job=${job} /><//>
    </div>`;
}

export function Page({ params: { id } }) {
  const { state, changed, others } = useJob(id);
  const { data, problem } = state;
  const name = data?.job.name;
  useEffect(() => {
    if (name !== undefined) setTitle(cut(name, 60));
  }, [name]);
  const isGone = problem?.status === 404;
  if (isGone && !data) throw problem;
  return html`<${Loaded} of=${state}>${(known) => html`<${Shown} known=${known} others=${others} changed=${changed} isGone=${isGone} />`}<//>`;
}
