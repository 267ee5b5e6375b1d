// Short messages about what was just done. Errors stay until they are closed.
import { button, h } from '../dom.js';

export function toast(text, kind = 'ok') {
  const place = document.getElementById('toasts');
  const item = h(
    'div',
    { class: `toast is-${kind}`, role: kind === 'error' ? 'alert' : undefined },
    h('span', {}, text),
    button('Close', () => item.remove(), { class: 'quiet' }),
  );
  place.append(item);
  while (place.childElementCount > 4) place.firstElementChild.remove();
  if (kind !== 'error') setTimeout(() => item.remove(), 6000);
}

export const failed = (problem) => {
  if (problem.name === 'AbortError') return;
  if (!problem.code) console.error(problem);
  toast(problem.message || String(problem), 'error');
};

/** Does something and says so: act(() => api.post(…), 'Queue paused'). → its answer; undefined when it failed. */
export async function act(action, done) {
  try {
    const answer = await action();
    const text = typeof done === 'function' ? done(answer) : done;
    if (text) toast(text);
    return answer === null || answer === undefined ? true : answer;
  } catch (problem) {
    failed(problem);
    return undefined;
  }
}
