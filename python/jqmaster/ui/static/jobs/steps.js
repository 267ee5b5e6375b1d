// Something is done to many jobs, step by step; between the steps it can be stopped.
import { api, path } from '../api.js';
import { count, jobs as inJobs } from '../format.js';
import { begin, toIds } from './actions.js';
import { found } from './found.js';

const AT_ONCE = 200;
const FOLLOW_EVERY_MS = 250;

/** report: {isOver(), total, say(text), step(how far, how many it was done to)} → how many it was done to */
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
  return carriedOn(await begin(action, where, values, report.total), action, report);
}

/** A bulk operation of the server: it goes on when this tab is closed, and any tab sees how far it is. */
async function carriedOn(begun, action, report) {
  let bulk = begun;
  while (!bulk.ended_ms) {
    await new Promise((resolve) => setTimeout(resolve, FOLLOW_EVERY_MS));
    if (report.isOver()) bulk = await api.post(path`/bulk/${bulk.id}/stop`);
    else bulk = (await api.get('/bulks')).bulks.find((one) => one.id === bulk.id) ?? { ...bulk, ended_ms: 1 };
    const said = `${bulk.resumed ? 'At least ' : ''}${inJobs(bulk.changed)} ${action.did}…`;
    report.step(bulk.changed, `${said} It goes on at the server when this page is closed.`);
  }
  if (bulk.problem) throw new Error(bulk.problem);
  return bulk.changed;
}
