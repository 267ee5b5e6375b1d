// Who ran a job: a registered worker by its name, any other as it calls itself.
import { all, path } from '../api.js';
import { cut } from '../format.js';
import { withQuery } from '../router.js';
import { html, Link, useEffect, useState } from '../view.js';

const KEPT_MS = 30000;
let asked = null;
let at = 0;

/** Names by id, asked for once in a while; what could not be asked for is not known. */
function names() {
  if (!asked || Date.now() - at > KEPT_MS) {
    at = Date.now();
    asked = all('/workers').then(
      ({ found }) => new Map(found.map((one) => [one.id, one.name])),
      () => new Map(),
    );
  }
  return asked;
}

const isRegistered = (id) => /^w[0-9a-f]{14}(?:[0-9a-f]{2})?$/.test(id);

/** A link with its name, which comes when it is known: to its page; of one that is gone to the jobs that it ran. */
export function Worker({ id, size = 60 }) {
  const [name, setName] = useState('');
  useEffect(() => {
    let isOver = false;
    setName('');
    if (isRegistered(id)) names().then((known) => isOver || setName(known.get(id) || ''));
    return () => {
      isOver = true;
    };
  }, [id]);
  const target = name ? path`/worker/${id}` : withQuery('/jobs', { worker: id });
  return html`<${Link} to=${target} title=${id}>${cut(name || id, size)}<//>`;
}

export const workers = async (text) => {
  const known = [...(await names())];
  return known.filter(([id, name]) => `${name} ${id}`.includes(text)).map(([id]) => id);
};
