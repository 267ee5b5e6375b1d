// What changes by itself. All of it rests while the tab is hidden.
import { api, OFFLINE, ROOT } from './api.js';
import { answered, expectEvery, missed } from './fresh.js';

/** Server-sent events: follow('/events', (data) => …) → stop. `ms`: that often they come at least. */
export function follow(target, onData, { ms = 0 } = {}) {
  const part = ms ? expectEvery(ms) : null;
  let source = null;
  let timer = 0;
  let isOver = false;
  const open = () => {
    if (source || isOver || document.hidden) return;
    source = new EventSource(ROOT + target);
    source.onmessage = (event) => {
      part?.came();
      answered();
      onData(JSON.parse(event.data));
    };
    source.addEventListener('unavailable', (event) => missed(JSON.parse(event.data).error.message));
    source.onerror = () => {
      missed(OFFLINE);
      // After an answer that is no stream the browser gives up; we do not.
      if (source?.readyState === EventSource.CLOSED) {
        api.get('/session').catch((problem) => problem.status === 401 && dispatchEvent(new Event('jq:unknown')));
        shut();
        timer = setTimeout(open, 3000);
      }
    };
  };
  const shut = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const turn = () => (document.hidden ? shut() : open());
  document.addEventListener('visibilitychange', turn);
  open();
  return () => {
    isOver = true;
    part?.stop();
    document.removeEventListener('visibilitychange', turn);
    shut();
  };
}

/**
 * Calls an async `action` every so often, and when somebody answers again, never twice at once → stop. It says whether
 * it brought what is asked.
 */
export function every(ms, action) {
  const part = expectEvery(ms);
  let timer = 0;
  let isOver = false;
  let isBusy = false;
  let isWoken = false;
  const step = async () => {
    clearTimeout(timer);
    isBusy = true;
    isWoken = false;
    if (!document.hidden) {
      const askedAt = Date.now();
      try {
        if (await action()) part.came(askedAt);
      } catch (problem) {
        if (problem.name !== 'AbortError') console.debug(problem);
      }
    }
    isBusy = false;
    if (!isOver) timer = setTimeout(step, isWoken ? 0 : ms);
  };
  timer = setTimeout(step, ms);
  const wake = () => {
    if (document.hidden) return;
    isWoken = true;
    if (!isBusy) step();
  };
  document.addEventListener('visibilitychange', wake);
  addEventListener('jq:back', wake);
  return () => {
    isOver = true;
    part.stop();
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', wake);
    removeEventListener('jq:back', wake);
  };
}
