// A job: what it is, what became of it, why it waits, and what can be done about it.

import { api, path } from '../api.js';
import { badge } from '../components/badge.js';
import { confirm } from '../components/dialog.js';
import { act, failed } from '../components/toast.js';
import { tree } from '../components/tree.js';
import { operatorButton as button, fill, h } from '../dom.js';
import { ago, count, cut, duration } from '../format.js';
import { actionOf } from '../jobs/actions.js';
import { alike } from '../jobs/alike.js';
import { changeForm } from '../jobs/change.js';
import { errorOf } from '../jobs/errors.js';
import { facts } from '../jobs/facts.js';
import { dependents, graph, SHOWN } from '../jobs/graph.js';
import { mass } from '../jobs/mass.js';
import { progressOf } from '../jobs/progress.js';
import { timeline } from '../jobs/timeline.js';
import { ENDED, WAITING } from '../jobs/where.js';
import { why } from '../jobs/why.js';
import { workerLink } from '../jobs/worker.js';
import { every, follow } from '../live.js';
import { may } from '../rights.js';
import { link, navigate, withQuery } from '../router.js';

const LARGE = 200000; // an argument of so many characters is not fetched again and again

const section = (title, ...content) =>
  h('section', { class: 'panel', 'aria-label': title }, h('h2', {}, title), content);

/** Draws anew without taking the focus from a button or a link that is there again. */
function keepingFocus(place, draw) {
  const held = place.contains(document.activeElement) ? document.activeElement.textContent : null;
  draw();
  if (held) [...place.querySelectorAll('a, button')].find((one) => one.textContent === held)?.focus();
}

const plain = (_key, value) => (typeof value === 'bigint' ? `${value}n` : value);

function actionsOf(job, changed, _isProtected) {
  const one = (id) => () =>
    mass(actionOf(id), { ids: [job.id], rows: [job] }).then((did) => {
      if (did === undefined) return;
      if (id === 'discard' && did) navigate('/jobs');
      else changed();
    });
  const at = (id) => actionOf(id).states.includes(job.status);
  const made = [];
  if (at('retry')) {
    made.push(
      button(
        'Retry',
        async () => {
          if (await act(() => api.post(path`/job/${job.id}/retry`), 'It is in the queue again.')) changed();
        },
        { class: 'primary' },
      ),
    );
  }
  if (at('run')) {
    made.push(
      button(
        'Run now',
        async () => {
          if (
            await act(() => api.patch(path`/job/${job.id}`, { delay: 0 }), 'It does not wait for its time any longer.')
          )
            changed();
        },
        { class: made.length ? '' : 'primary' },
      ),
    );
  }
  made.push(
    button('Change…', async () => {
      const changes = await changeForm(job.id).catch(failed);
      if (changes) changed();
    }),
  );
  if (may('pusher'))
    made.push(h('a', { class: 'button', href: `/ui${withQuery('/enqueue', { from: job.id })}` }, 'Enqueue again…'));
  if (at('kick')) {
    made.push(
      button('Take from worker…', async () => {
        const isSure = await confirm({
          title: 'Take it from its worker?',
          action: 'Take from worker',
          body: [
            'It waits again and loses no retry. Its worker is told that it has lost it; what it did so far may happen twice.',
          ],
        });
        if (isSure && (await act(() => api.post(path`/job/${job.id}/kick`, {}), 'It waits in its queue again.')))
          changed();
      }),
    );
  }
  if (at('cancel')) made.push(button('Cancel…', one('cancel'), { class: 'danger' }));
  if (at('discard')) made.push(button('Discard…', one('discard'), { class: 'danger' }));
  return made;
}

function failure(job) {
  if (job.status === 'done' || (!job.message && job.error === null && !job.reason)) return null;
  const { group } = job;
  return h(
    'section',
    { class: 'panel failure', 'aria-label': 'Last failure' },
    h('h2', {}, job.status === 'error' ? 'It failed for good' : 'Last failure'),
    h('p', { class: 'problem clip said-all' }, job.message || `reason: ${job.reason || 'not given'}`),
    h(
      'p',
      { class: 'muted' },
      job.retry_count ? `${job.retry_count} of ${job.max_retry + 1} attempts failed` : 'It has begun anew since',
      job.reason && job.reason !== 'other' ? ` · ${job.reason}` : '',
      group
        ? [' · group ', job.status === 'error' ? link(withQuery('/jobs', { group }), cut(group, 80)) : cut(group, 80)]
        : '',
    ),
    errorOf(job.error),
  );
}

class JobPage {
  constructor(view, id) {
    Object.assign(this, {
      id,
      at: path`/job/${id}`,
      job: null,
      others: new Map(),
      shownValues: '',
      isLarge: false,
      isOver: false,
      stopFollowing: null,
    });
    this.head = h('div', { class: 'head job-head' });
    const place = (kind = '') => h('div', { class: `place ${kind}` });
    this.place = {
      progress: place(),
      why: place(),
      graph: place(),
      dependents: place(),
      failure: place(),
      values: place('grid'),
      history: place(),
      facts: place(),
    };
    const { history, facts: known, ...others } = this.place;
    view.append(this.head, ...Object.values(others), h('div', { class: 'grid job-grid' }, history, known));
    this.refresh = this.refresh.bind(this);
  }

  /** Those it waits for, and those that wait for it, as far as they are shown; what has ended stays as it is. */
  async lookAround() {
    const open = new Set(this.job.waits_for || []);
    const depends = [...(this.job.depends || [])].sort((a, b) => open.has(b) - open.has(a));
    const waiting = (this.job.dependents || []).slice(0, SHOWN);
    for (const one of waiting) open.add(one);
    const wanted = [...depends.slice(0, SHOWN), ...waiting];
    await Promise.all(
      wanted
        .filter((one) => !ENDED.includes(this.others.get(one)?.status) || open.has(one))
        .map(async (one) => {
          this.others.set(one, await api.get(path`/job/${one}`).catch(() => null));
        }),
    );
  }

  /** What happened to it, and why it waits: known apart from its document. */
  async drawRest() {
    const { job, place, others } = this;
    const explained = WAITING.includes(job.status) ? api.get(`${this.at}/explain`) : null;
    const [history, explanation] = await Promise.all([api.get(`${this.at}/history`), explained, this.lookAround()]);
    if (explanation) await this.lookAtOrder(explanation);
    if (this.isOver) return;
    fill(place.history, section('What happened', timeline(history, job, explanation)));
    fill(place.dependents, job.dependents ? section('What waits for it', dependents(job, others)) : null);
    if (job.depends?.length) fill(place.graph, section('What it waits for', graph(job, others)));
    const reasons = explanation ? why(explanation, job, others, this.refresh) : [];
    keepingFocus(place.why, () => fill(place.why, reasons.length ? section('Why it waits', reasons) : null));
  }

  /** Of full constraints whether they are in strict order: `explain` does not say so. */
  async lookAtOrder({ constraints = [] }) {
    const full = constraints.filter((one) => !one.open && one.concurrency === 1 && one.running);
    await Promise.all(
      full.map(async (one) => {
        one.order = (await api.get(path`/constraint/${one.id}`).catch(() => ({}))).order;
      }),
    );
  }

  drawValues() {
    const { job } = this;
    const key = JSON.stringify([job.argument, job.result, job.keep_result, job.status], plain);
    this.isLarge = key.length > LARGE;
    // What somebody has opened in a tree stays open.
    if (key === this.shownValues) return;
    this.shownValues = key;
    const nothing = h(
      'p',
      { class: 'muted' },
      job.keep_result ? 'Nothing, or it is not kept any longer.' : 'Results of this job are not kept.',
    );
    const hasResult = job.result !== null && job.result !== undefined;
    fill(
      this.place.values,
      section('Argument', tree(job.argument, 'Argument'), alike(job.argument)),
      hasResult
        ? section('Result', tree(job.result, 'Result'))
        : job.status === 'done'
          ? section('Result', nothing)
          : null,
    );
  }

  draw() {
    const { job, place } = this;
    keepingFocus(this.head, () =>
      fill(
        this.head,
        h('h1', {}, cut(job.name, 200), ' ', badge(job.status)),
        h('div', { class: 'actions' }, actionsOf(job, this.refresh)),
        h(
          'p',
          { class: 'muted job-line' },
          h('code', {}, job.id),
          ' · in ',
          link(path`/queue/${job.queue}`, cut(job.queue, 80)),
          ' · enqueued ',
          ago(job.created_ms),
          job.worker_id
            ? [' · ', job.status === 'running' ? 'runs' : 'ran last', ' on ', workerLink(job.worker_id)]
            : '',
          job.started_ms && job.ended_ms ? ` · took ${duration(Math.max(0, job.ended_ms - job.started_ms))}` : '',
          job.attempt > 1 ? ` · ${count(job.attempt)} attempts` : '',
        ),
      ),
    );
    fill(place.progress, progressOf(job, { isLong: true }));
    fill(place.failure, failure(job));
    fill(place.facts, section('Facts', facts(job)));
    this.drawValues();
  }

  async load() {
    this.job = await api.get(this.at);
    if (this.isOver) return;
    this.draw();
    await this.drawRest();
    if (!this.isOver) this.listen();
  }

  async refresh() {
    try {
      await this.load();
    } catch (problem) {
      if (!this.isGone(problem)) failed(problem);
    }
  }

  /** Whether there is nothing left to say, and says so. */
  isGone(problem) {
    if (!this.isOver && problem.status === 404)
      fill(
        this.place.why,
        section('It is gone', h('p', {}, 'Its record is not there any longer. ', link('/jobs', 'All jobs'))),
      );
    return this.isOver || problem.status === 404;
  }

  /** Its transitions, as they happen, until it has ended. */
  listen() {
    if (ENDED.includes(this.job.status)) {
      this.stopFollowing?.();
      this.stopFollowing = null;
    } else {
      this.stopFollowing ??= follow(`${this.at}/events`, (event) => {
        if (event.state !== this.job.status || event.attempt !== this.job.attempt) this.refresh();
      });
    }
  }

  /** Progress and reasons to wait are no transitions: those are asked for. */
  async lookAgain() {
    if (document.querySelector('dialog[open]')) return;
    // One that has ended may be retried, or go, by others.
    if (this.job.status === 'running' || ENDED.includes(this.job.status)) {
      if (!this.isLarge) await this.load().catch((problem) => this.isGone(problem) || Promise.reject(problem));
    } else await this.drawRest();
  }

  close() {
    this.isOver = true;
    this.stopFollowing?.();
  }
}

export async function render(view, { id }) {
  const page = new JobPage(view, id);
  let stop = null;
  try {
    await page.load();
    document.title = `${cut(page.job.name, 60)} · JQ`;
    stop = every(3000, () => page.lookAgain());
  } catch (problem) {
    page.close();
    throw problem;
  }
  return () => {
    stop();
    page.close();
  };
}
