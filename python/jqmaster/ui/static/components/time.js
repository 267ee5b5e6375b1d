// Moments that go on counting while they are shown: "5 s ago", "in 3 min".
import { agoText, moment, untilText } from '../format.js';
import { html, useEffect, useState } from '../view.js';

const shown = new Set();
setInterval(() => {
  if (!document.hidden) for (const draw of shown) draw();
}, 1000);

function useText(textOf, ms) {
  const [, setText] = useState('');
  useEffect(() => {
    const draw = () => setText(textOf(ms));
    shown.add(draw);
    return () => shown.delete(draw);
  }, [ms]);
  return textOf(ms);
}

function Time({ ms, textOf }) {
  const text = useText(textOf, ms);
  return html`<time datetime=${new Date(ms).toISOString()} title=${moment(ms)} data-ms=${ms}>${text}</time>`;
}

/** <Ago ms=${job.enqueued_ms} />; a dash where there is no moment. */
export const Ago = ({ ms }) => (ms ? html`<${Time} ms=${ms} textOf=${agoText} />` : html`<span class="muted">–</span>`);

/** <Until ms=${job.due_ms} />: never said to have passed, "any moment" at the most. */
export const Until = ({ ms }) =>
  ms ? html`<${Time} ms=${ms} textOf=${untilText} />` : html`<span class="muted">–</span>`;
