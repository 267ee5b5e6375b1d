// What changing the number of a constraint would do, as far as its keys are known; and which is the fullest.

/** What all keys come to: of a constraint without keys it is its own. */
const keysOf = (constraint) => constraint.busiest ?? [constraint];

/** Whether sums over its keys are of all of them. */
export const isWhole = (constraint) =>
  !constraint.more && (constraint.looked === undefined || constraint.looked >= constraint.keys);

/**
 * With `most` at once: {starts: jobs held now that could start at once, over: jobs that run beyond it and go on,
 * isExact: all keys were looked at}. Other limits and free workers are not known here.
 */
export function preview(constraint, most) {
  let starts = 0;
  let over = 0;
  let running = 0;
  let held = 0;
  for (const key of keysOf(constraint)) {
    starts += Math.min(key.held ?? 0, Math.max(0, most - key.running));
    over += Math.max(0, key.running - most);
    running += key.running;
    held += key.held ?? 0;
  }
  const isExact = isWhole(constraint) && held === (constraint.held ?? held) && running === constraint.running;
  return { starts, over, isExact };
}

/** Whether a key has no room now: for lack of a place, or until a moment. */
export const isFull = (constraint, key) =>
  Boolean(key.opens_ms || (constraint.concurrency && key.running >= constraint.concurrency));

/** How many of its keys have no room now. */
export const fullKeys = (constraint) =>
  constraint.by ? (constraint.full ?? 0) : Number(isFull(constraint, constraint));

/** The fullest first: by jobs held, then by keys that are full, then by jobs that run. */
export const byFullness = (a, b) =>
  (b.held ?? 0) - (a.held ?? 0) || fullKeys(b) - fullKeys(a) || b.running - a.running || (a.id < b.id ? -1 : 1);

/** A constraint as it can be set again. `now`: an expiry is told by how long there is left. */
export function settable(constraint, now) {
  const body = {};
  for (const field of ['match', 'by', 'concurrency', 'rate', 'cost', 'order'])
    if (constraint[field] !== undefined) body[field] = constraint[field];
  if (constraint.expires_ms) body.expires_in = Math.max(0.001, (constraint.expires_ms - now) / 1000);
  return body;
}
