/**
 * Preloaded into Penstock (`node --import`): replaces its batch scheduler (`src/request/batch-scheduler.ts`) with one that runs
 * each callback at once.
 */

import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const scheduler = new URL('../../src/request/batch-scheduler.ts', import.meta.url);
if (!readFileSync(scheduler, 'utf8').includes('export function createBatchScheduler(): BatchScheduler'))
  throw new Error(`${scheduler.pathname} has changed: adapt its replacement in ${import.meta.filename}`);

registerHooks({
  load: (url, context, nextLoad) =>
    url === scheduler.href
      ? {
          format: 'module',
          source: 'export const createBatchScheduler = () => (run) => run();',
          shortCircuit: true,
        }
      : nextLoad(url, context),
});
