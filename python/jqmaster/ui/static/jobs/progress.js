// How far a running job is, as its worker says.
import { h } from '../dom.js';
import { cut, percent } from '../format.js';

/** A bar, and its text; null for one that says nothing. A worker may count to 1, to 100, or to what it likes. */
export function progressOf(job, { isLong = false } = {}) {
  const { progress, progress_message: message } = job;
  if (job.status !== 'running' || (progress === undefined && !message)) return null;
  const most = progress > 1 ? 100 : 1;
  const isShare = progress >= 0 && progress <= 100;
  const said = isShare ? percent(progress / most) : String(progress ?? '');
  const text = [said, message ? cut(message, isLong ? 300 : 60) : ''].filter(Boolean).join(' · ');
  return h(
    'div',
    { class: 'progress-box', title: isLong ? undefined : text },
    isShare ? h('progress', { max: most, value: progress, 'aria-label': 'Progress' }) : null,
    h('span', { class: isLong ? '' : 'muted' }, isLong ? text : said),
  );
}
