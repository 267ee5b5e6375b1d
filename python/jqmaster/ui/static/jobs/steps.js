// Something is done to many jobs: to those that are named from here, step by step; to all that match by masters.
import { beginBulk, followBulk } from '../components/bulks.js';
import { count, jobs as inJobs } from '../format.js';
import { toIds } from './actions.js';
import { found } from './found.js';

const AT_ONCE = 200;

/** report: {isOver(), isStopped(), total, step(how far, words)} → how many it was done to */
export async function toAllIds(action, ids, values, report) {
  let did = 0;
  for (let at = 0; at < ids.length && !report.isOver(); at += AT_ONCE) {
    const some = ids.slice(at, at + AT_ONCE);
    did += await toIds(action, some, values);
    report.step(at + some.length, `${inJobs(did)} ${action.did}…`);
  }
  return did;
}

export async function toAllThatMatch(action, where, values, report) {
  if (!action.path) {
    // What is changed may move to another place in the order: all are found before the first is touched.
    const ids = [];
    for await (const page of found(where)) {
      if (report.isOver()) return 0;
      ids.push(...page.map((job) => job.id));
      report.step(0, `Found ${count(ids.length)}…`);
    }
    return toAllIds(action, ids, values, report);
  }
  const options = action.options?.(values) || {};
  const begun = await beginBulk(action.id, where, { ...options, ...(report.total ? { total: report.total } : {}) });
  const bulk = await followBulk(begun, {
    step: ({ changed, resumed }) =>
      report.step(
        changed,
        `${resumed ? 'At least ' : ''}${inJobs(changed)} ${action.did}. This goes on when you close it.`,
      ),
    isOver: () => report.isOver() && (report.isStopped() ? 'stop' : 'leave'),
  });
  if (bulk.problem) throw new Error(bulk.problem);
  return bulk.changed;
}
