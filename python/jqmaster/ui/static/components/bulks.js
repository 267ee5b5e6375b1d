// What is done to many jobs: begun here, carried on by masters, also when this tab is closed; seen in every tab.
import { api, path } from '../api.js';
import { count, now } from '../format.js';
import { html, Link, useData } from '../view.js';
import { Button } from './parts.js';
import { Ago } from './time.js';
import { act } from './toast.js';

const LOOK_MS = 3000;
const FOLLOW_MS = 300;
const FAILED_SHOWN_MS = 600000;
const DOES = { discard: 'Discarding', cancel: 'Cancelling', retry: 'Retrying' };

/** what: 'discard', 'cancel' or 'retry'; where: as of the API; more: {total, force, dependents, queue}. */
export const beginBulk = (what, where, more = {}) => api.post('/bulks', { what, where, ...more });

const stop = (id) => api.post(path`/bulk/${id}/stop`);

/** Waits for its end → its last document. step(bulk) is told how far it is; told 'stop' or 'leave' by isOver(). */
export async function followBulk(begun, { step, isOver }) {
  let bulk = begun;
  while (!bulk.ended_ms) {
    step(bulk);
    const wish = isOver();
    if (wish === 'leave') return bulk;
    if (wish === 'stop') return stop(bulk.id);
    await new Promise((resolve) => setTimeout(resolve, FOLLOW_MS));
    const { bulks } = await api.get('/bulks');
    bulk = bulks.find((one) => one.id === begun.id) || { ...bulk, ended_ms: Date.now() };
  }
  return bulk;
}

function Bulk({ bulk, reload }) {
  const { total, changed, where } = bulk;
  const whom = where.queue ? html` of <${Link} to=${path`/queue/${where.queue}`}>${where.queue}<//>` : '';
  // A master that takes over may count a step less.
  const sum = `${bulk.resumed ? 'at least ' : ''}${count(changed)}`;
  if (bulk.ended_ms)
    return html`<p class="problem" role="alert">${DOES[bulk.what]} jobs${whom} ended after ${sum}: ${bulk.problem}</p>`;
  return html`<div class="bulk">
    <span>${DOES[bulk.what]} jobs${whom}: <b>${sum}</b>${total ? ` of ${count(total)}` : ''}, begun <${Ago} ms=${bulk.begun_ms} />${bulk.actor ? ` by ${bulk.actor}` : ''}</span>
    ${total ? html`<progress max=${Math.max(total, 1)} value=${Math.min(changed, total)} aria-label=${`${DOES[bulk.what]} jobs`}></progress>` : null}
    <${Button} needs="operator" class="small" onClick=${async () => {
      await act(() => stop(bulk.id), 'Stopped.');
      reload();
    }}>Stop<//>
  </div>`;
}

/** Those under way, of one queue or of all, and for ten minutes those that failed; nothing while there are none. */
export function Bulks({ queue }) {
  const state = useData((signal) => api.get('/bulks', {}, { signal }), { ms: LOOK_MS });
  const isShown = (one) => !one.ended_ms || (one.problem && now() - one.ended_ms < FAILED_SHOWN_MS);
  const touches = (one) => !queue || !one.where.queue || one.where.queue === queue;
  const some = (state.data?.bulks || []).filter((one) => isShown(one) && touches(one));
  if (!some.length) return null;
  return html`<section class="panel" aria-label="Under way">
    ${some.map((bulk) => html`<${Bulk} key=${bulk.id} bulk=${bulk} reload=${state.reload} />`)}
  </section>`;
}
