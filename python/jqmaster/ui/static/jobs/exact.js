// A job with its argument as JSON text in which numbers are as they are stored: 1.0 is not 1.
import { ApiError, parse, path, ROOT } from '../api.js';
import { cut } from '../format.js';
import { exactParse } from './jsontext.js';

/** → {job, argument: text} */
export async function exactJob(id) {
  const answer = await fetch(ROOT + path`/job/${id}`, { headers: { accept: 'application/json' }, cache: 'no-store' });
  const text = await answer.text();
  if (!answer.ok) throw new ApiError(answer.status, 'NOTFOUND', `Job ${cut(id, 60)} is not there any longer.`);
  return { job: parse(text), argument: JSON.stringify(exactParse(text).argument, null, 2) };
}
