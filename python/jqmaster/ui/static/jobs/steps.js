// Something is done to many jobs, step by step; between the steps it can be stopped.
import { count, jobs as inJobs } from '../format.js';
import { toIds, toWhere } from './actions.js';
import { found } from './found.js';

const AT_ONCE = 200;

/** report: {isOver(), say(text), step(how far, how many it was done to)} → how many it was done to */
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
  let cursor = '';
  let did = 0;
  do {
    const step = await toWhere(action, where, cursor, values);
    did += step.changed;
    cursor = step.cursor;
    report.step(did, `${inJobs(did)} ${action.did}…`);
  } while (cursor && !report.isOver());
  return did;
}
