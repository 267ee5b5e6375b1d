// Small parts of pages.
import { may } from '../rights.js';
import { BASE, carried } from '../router.js';
import { html } from '../view.js';

/** The top of a page: <Head title="Queues" actions=${…}>below the title</Head>. */
export const Head = ({ title, actions, children }) => html`<div class="head">
  <h1>${title}</h1>
  ${actions ? html`<div class="actions">${actions}</div>` : null}
  ${children}
</div>`;

/** A number with its name: <Tile name="Waiting" value="1,204" kind="queued" to="/jobs?status=queued">8/s come</Tile>. */
export function Tile({ name, value, kind, to, children }) {
  const inner = html`<span class="tile-name">${kind ? html`<span class=${`dot is-${kind}`}></span>` : null}${name}</span>
    <div class="tile-value">${value}</div>
    ${children ? html`<div class="tile-more">${children}</div>` : null}`;
  return to ? html`<a class="tile" href=${BASE + carried(to)}>${inner}</a>` : html`<div class="tile">${inner}</div>`;
}

/** Nothing here, and how to begin: <Empty command="jqmaster enqueue …">No jobs yet.</Empty>. */
export const Empty = ({ command, children }) => html`<div class="empty">
  <p>${children}</p>
  ${command ? html`<p><code class="command">${command}</code></p>` : null}
</div>`;

/** Why there is nothing to show, in place of it. */
export const Problem = ({ problem, retry }) => html`<div class="empty is-problem" role="alert">
  <p>${problem.message || String(problem)}</p>
  ${retry ? html`<p><button type="button" onClick=${retry}>Try again</button></p>` : null}
</div>`;

/**
 * What useData answered: <Loaded of=${state}>${(data) => …}</Loaded>: the first look, a problem, or the view. What was
 * seen before stays when a later look fails: the frame says how old it is.
 */
export function Loaded({ of, children }) {
  if (of.data !== undefined) return children(of.data);
  // The page itself is not there: the frame says so in its place.
  if (of.problem?.status === 404) throw of.problem;
  if (of.problem) return html`<${Problem} problem=${of.problem} retry=${of.reload} />`;
  return html`<p class="muted">Loading …</p>`;
}

/** <Button needs="operator" onClick=${…}>Pause</Button>; nothing for those who may not. */
export const Button = ({ needs, children, ...rest }) =>
  needs && !may(needs) ? null : html`<button type="button" ...${rest}>${children}</button>`;

export const zero = (text, number) => (number ? text : html`<span class="zero">${text}</span>`);
