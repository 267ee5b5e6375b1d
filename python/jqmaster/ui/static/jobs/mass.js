// Asks before something is done to many jobs: which, how many, and what it means. Then does it, with a way to stop.
import { Badge } from '../components/badge.js';
import { field, read } from '../components/field.js';
import { failed, toast } from '../components/toast.js';
import { button, h } from '../dom.js';
import { count, cut, jobs as inJobs } from '../format.js';
import { html, render } from '../view.js';
import { measure } from './found.js';
import { toAllIds, toAllThatMatch } from './steps.js';
import { inWords, narrowed } from './where.js';

const SHOWN = 5;

/** Some of the jobs, and how many more there are. */
const Sample = ({ rows, total }) =>
  rows.length > 0 &&
  html`<ul class="sample">
    ${rows.map(
      (job) =>
        html`<li><${Badge} word=${job.status} /> <code>${job.id}</code> ${cut(job.name, 60)}${
          job.message ? html`<span class="muted"> ${cut(job.message, 80)}</span>` : null
        }</li>`,
    )}
    ${total > rows.length ? html`<li class="muted">… and ${count(total - rows.length)} more</li>` : null}
  </ul>`;

const Far = ({ label, far, total, words }) => html`<progress max=${Math.max(total, 1)} value=${Math.min(far, total)}
    aria-label=${label}></progress><p role="status">${words}</p>`;

/** Everything, with no filter, and beyond repair: one types what it is. */
const sureField = (action) =>
  field({
    name: 'typed',
    required: true,
    label: `No filter is set: this means every job there is. To confirm, type “${action.label}”`,
  });

class Mass {
  constructor(action, target, where, rows) {
    Object.assign(this, {
      action,
      target,
      where,
      rows,
      total: rows.length,
      did: undefined,
      isRunning: false,
      isStopped: false,
      isOver: false,
    });
    this.stop = new AbortController();
    this.number = h('p', { class: 'mass-count', role: 'status' }, 'Counting…');
    this.preview = h('div', {});
    this.fields = (action.fields || []).map(field);
    this.sure = where && action.danger && !Object.keys(target.where).length ? sureField(action) : null;
    this.problem = h('p', { class: 'problem', role: 'alert', hidden: true });
    this.go = h(
      'button',
      { type: 'submit', class: action.danger ? 'danger' : 'primary', disabled: true },
      action.label,
    );
    this.leave = button('Close', () => {
      this.isStopped = this.isRunning;
      this.dialog.close();
    });
    this.dialog = this.made();
  }

  made() {
    const { action, where, rows } = this;
    const title = `${action.label}: ${where ? 'all that match' : rows.length === 1 ? 'one job' : `${count(rows.length)} chosen jobs`}`;
    const only = where
      ? h(
          'p',
          { class: 'muted' },
          `Only: ${inWords(where).join('; ')}.${action.path && action.danger ? ' Also those that come to match while it is done.' : ''}`,
        )
      : null;
    const submit = (event) => {
      event.preventDefault();
      this.start();
    };
    const dialog = h(
      'dialog',
      { class: 'wide', 'aria-label': title },
      h('h2', {}, title),
      h(
        'form',
        { method: 'dialog', novalidate: true, on: { submit } },
        h('p', {}, action.what),
        only,
        this.number,
        this.preview,
        this.fields.map((one) => one.element),
        this.sure?.element,
        this.problem,
        h('div', { class: 'buttons' }, this.leave, this.go),
      ),
    );
    dialog.addEventListener('mousedown', (event) => event.target === dialog && !this.isRunning && dialog.close());
    return dialog;
  }

  /** → how many were changed; undefined when it was given up. */
  ask() {
    document.body.append(this.dialog);
    this.dialog.showModal();
    (this.fields[0] || this.leave).focus();
    if (this.where) {
      measure(this.where, { signal: this.stop.signal, show: SHOWN, tell: (counted) => this.tell(counted) }).catch(
        (problem) => problem.name !== 'AbortError' && this.complain(problem),
      );
    } else {
      this.tell({ sum: this.rows.length, first: this.rows.slice(0, SHOWN), isEnd: true, isAll: true });
      const others = this.target.rows.length - this.rows.length;
      if (others)
        this.number.textContent += ` ${count(others)} of those chosen ${others === 1 ? 'is' : 'are'} in another state and left alone.`;
    }
    return new Promise((resolve) => {
      this.dialog.addEventListener('close', async () => {
        this.isOver = true;
        this.stop.abort();
        this.dialog.remove();
        // Closed in the middle: the step under way is waited for.
        await this.running;
        resolve(this.did);
      });
    });
  }

  tell({ sum, first, isEnd, isAll }) {
    if (this.isRunning) return;
    this.total = sum;
    this.isCounted = isEnd && isAll;
    this.number.textContent = isEnd ? `${isAll ? '' : 'At least '}${inJobs(sum)}.` : `Counting… ${inJobs(sum)}`;
    render(html`<${Sample} rows=${first} total=${sum} />`, this.preview);
    this.go.disabled = !isEnd || !sum;
    this.go.textContent = `${this.action.label}: ${isEnd && !isAll ? `${count(sum)} and more` : inJobs(sum)}`;
  }

  complain(problem) {
    this.problem.textContent = problem.message;
    this.problem.hidden = false;
  }

  /** What was asked for; null, and said at its field, when that will not do. */
  values() {
    const asked = [...this.fields, this.sure].filter(Boolean);
    for (const one of asked) one.setProblem('');
    try {
      const values = read(this.fields);
      if (this.sure && this.sure.value().trim().toLowerCase() !== this.action.label.toLowerCase()) {
        throw Object.assign(new Error(`expected ${this.action.label}`), { field: 'typed' });
      }
      return values;
    } catch (problem) {
      const at = asked.find((one) => one.name === problem.field);
      at?.setProblem(problem.message);
      at?.focus();
      return null;
    }
  }

  start() {
    const values = this.values();
    if (!values || this.isRunning) return;
    this.isRunning = true;
    this.stop.abort();
    this.problem.hidden = true;
    const tell = (far, words) =>
      render(html`<${Far} label=${this.action.label} far=${far} total=${this.total} words=${words} />`, this.preview);
    tell(0, 'Starting…');
    for (const one of [...this.fields, this.sure]) if (one) one.element.hidden = true;
    this.number.hidden = true;
    this.go.disabled = true;
    this.leave.textContent = 'Stop';
    this.leave.focus();
    this.running = this.run(values, {
      isOver: () => this.isOver,
      isStopped: () => this.isStopped,
      total: this.isCounted ? this.total : undefined,
      step: tell,
    });
  }

  async run(values, report) {
    const { action, where, rows } = this;
    try {
      this.did = await (where
        ? toAllThatMatch(action, where, values, report)
        : toAllIds(
            action,
            rows.map((job) => job.id),
            values,
            report,
          ));
      const left = where || this.isOver ? 0 : rows.length - this.did;
      toast(
        `${inJobs(this.did)} ${action.did}${!this.isOver ? '' : where && action.path && !this.isStopped ? ' so far; it goes on' : '; then it was stopped'}.${left > 0 ? ` ${count(left)} had moved on, or are protected.` : ''}`,
        this.did || this.isOver ? 'ok' : 'error',
      );
      this.dialog.close();
    } catch (problem) {
      // Some may be done already: whoever asked has to look again.
      this.did = 0;
      if (this.isOver) failed(problem);
      this.complain(problem);
      this.leave.textContent = 'Close';
    }
  }
}

/** target: {ids, rows} or {where} → a promise: how many were changed; undefined when it was given up. */
export async function mass(action, target) {
  const where = target.where && narrowed(target.where, action.states);
  const rows = target.rows?.filter((job) => action.states.includes(job.status)) || [];
  if (target.where ? !where : !rows.length) {
    toast(`None of them can be used with “${action.label}”: that is for ${action.states.join(', ')}.`, 'error');
    return undefined;
  }
  return new Mass(action, target, where, rows).ask();
}
