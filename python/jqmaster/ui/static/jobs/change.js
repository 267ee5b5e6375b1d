// Changing one job: priority, time, limits, argument, tags; as far as its state allows.
import { api, path } from '../api.js';
import { form } from '../components/dialog.js';
import { cut } from '../format.js';
import { exactJob } from './exact.js';
import { exactParse, jsonProblem } from './jsontext.js';
import { WAITING } from './where.js';

function argumentOf(text) {
  const at = jsonProblem(text);
  if (at) throw Object.assign(new Error(`line ${at.line}, column ${at.column}: ${at.message}`), { field: 'argument' });
  return exactParse(text);
}

/** Asks what is to be changed, and changes it → the changes; undefined when it was given up. */
export async function changeForm(id) {
  const { job, argument } = await exactJob(id);
  const waits = WAITING.includes(job.status);
  const fields = [
    ...(waits
      ? [
          { name: 'queue', label: 'Queue', value: job.queue },
          {
            name: 'priority',
            label: 'Priority',
            type: 'number',
            value: String(job.priority),
            hint: 'The smaller runs first.',
          },
          { name: 'delay', label: 'Ready in', unit: 's from now', type: 'number', hint: 'Empty: as it is. 0: now.' },
          { name: 'max_retry', label: 'Retries at most', type: 'number', value: String(job.max_retry) },
          { name: 'timeout', label: 'Lease', unit: 's', type: 'number', value: String(job.timeout) },
          { name: 'argument', label: 'Argument', value: argument, rows: 8, hint: 'JSON.' },
        ]
      : []),
    { name: 'tags', label: 'Tags', type: 'list', value: job.tags || [], hint: 'With commas between.' },
  ];
  const before = { queue: job.queue, priority: job.priority, max_retry: job.max_retry, timeout: job.timeout };
  return form({
    title: `Change ${cut(job.name, 60)}`,
    fields,
    wide: true,
    body: waits ? [] : ['Of a job that runs or has ended, only tags can be changed.'],
    submit: async (values) => {
      const changes = {};
      for (const [name, value] of Object.entries(before))
        if (values[name] !== undefined && values[name] !== value) changes[name] = values[name];
      if (values.delay !== undefined) changes.delay = values.delay;
      if (values.argument !== undefined && values.argument !== argument) changes.argument = argumentOf(values.argument);
      const tags = values.tags || [];
      if (tags.join('\n') !== (job.tags || []).join('\n')) changes.tags = tags;
      if (Object.keys(changes).length) await api.patch(path`/job/${job.id}`, changes);
      return changes;
    },
  });
}
