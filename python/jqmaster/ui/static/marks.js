// Deploy marks within the time range of all pages.
import { api } from './api.js';
import { useData } from './view.js';

/** → {marks: [{time_ms, text}], the newest first, lines: the same as a Chart takes them, reload()}. */
export function useMarks({ name, from_ms, to_ms, isLive }) {
  const period = { from_ms: Math.round(from_ms), to_ms: isLive ? '' : Math.round(to_ms) };
  const state = useData((signal) => api.get('/marks', period, { signal }), {
    ms: 30000,
    deps: isLive ? [name] : [from_ms, to_ms],
  });
  const marks = state.data?.marks || [];
  return { marks, lines: marks.map(({ time_ms, text }) => ({ ms: time_ms, text })), reload: state.reload };
}
