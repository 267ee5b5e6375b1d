// Whether a push is a JQ server's: docs/push.md. For a worker in Node.
import { createHmac, timingSafeEqual } from 'node:crypto';

export const seen = new Map(); // ids of pushes, and when they came

/** Whether a push is a master's, and new. headers: by their names in small letters; body: a Buffer. */
export function isMasters(secrets, headers, body, now = Date.now() / 1000) {
  const id = headers['webhook-id'] ?? '';
  const moment = headers['webhook-timestamp'] ?? '';
  if (!/^[!-~]+$/.test(id) || id.includes('.') || !/^\d+$/.test(moment)) return false;
  if (Math.abs(now - moment) > 300) return false;
  const given = (headers['webhook-signature'] ?? '').split(' ').map((one) => Buffer.from(one));
  const isRight = secrets.some((secret) => {
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    const digest = createHmac('sha256', key).update(`${id}.${moment}.`).update(body).digest('base64');
    const right = Buffer.from(`v1,${digest}`);
    return given.some((one) => one.length === right.length && timingSafeEqual(one, right));
  });
  for (const [old, came] of seen) if (came < now - 600) seen.delete(old);
  if (!isRight || seen.has(id)) return false;
  seen.set(id, now);
  return true;
}
