// The pages: path (segments with a colon are names), title, key (`g` and then this goes there), module.
// Those with `nav` are in the bar at the top. A page's code is loaded when it is first shown.
// With `to` it only leads on: lists have plural paths, so one types those of what is in them as well.

import { path } from '../api.js';
import { may } from '../rights.js';

export const pages = [
  { path: '/', title: 'Overview', nav: true, key: 'o', load: () => import('./overview.js') },
  { path: '/changes', title: 'Changes', under: '/', load: () => import('./changes.js') },
  { path: '/queues', title: 'Queues', nav: true, key: 'q', load: () => import('./queues.js') },
  { path: '/queue/:name', title: 'Queue', under: '/queues', load: () => import('./queue.js') },
  { path: '/queues/:name', to: (name) => path`/queue/${name}` },
  { path: '/jobs', title: 'Jobs', nav: true, key: 'j', load: () => import('./jobs.js') },
  { path: '/job/:id', title: 'Job', under: '/jobs', load: () => import('./job.js') },
  { path: '/jobs/:id', to: (id) => path`/job/${id}` },
  { path: '/failures', title: 'Failures', nav: true, key: 'f', load: () => import('./failures.js') },
  { path: '/constraints', title: 'Constraints', nav: true, key: 'c', load: () => import('./constraints.js') },
  { path: '/constraint/:id', title: 'Constraint', under: '/constraints', load: () => import('./constraint.js') },
  { path: '/constraints/:id', to: (id) => path`/constraint/${id}` },
  { path: '/schedules', title: 'Schedules', nav: true, key: 's', load: () => import('./schedules.js') },
  { path: '/workers', title: 'Workers', nav: true, key: 'w', load: () => import('./workers.js') },
  { path: '/worker/:name', title: 'Worker', under: '/workers', load: () => import('./worker.js') },
  { path: '/workers/:name', to: (name) => path`/worker/${name}` },
  { path: '/enqueue', title: 'Enqueue', nav: true, needs: 'pusher', key: 'e', load: () => import('./enqueue.js') },
  { path: '/trail', title: 'Trail', nav: true, needs: 'operator', key: 't', load: () => import('./trail.js') },
  { path: '/keys', title: 'Keys', nav: true, needs: 'admin', key: 'k', load: () => import('./keys.js') },
];

/** Those in the bar that are for who looks, in order. */
export const inBar = () => pages.filter((page) => page.nav && (!page.needs || may(page.needs)));
