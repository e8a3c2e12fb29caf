/**
 * A gateway as a process of its own, that holds writes at exact steps: it tells its parent where each stands, and goes
 * on when it is told to. Its argument is a `SteppingOrder` in JSON.
 */

import { operatorsOf } from '../../src/admin/operators.ts';
import { createGateway } from '../../src/gateway.ts';
import { createFileState } from '../../src/state/file.ts';
import { createMemoryState } from '../../src/state/memory.ts';
import type { State } from '../../src/state/ports.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { adminToken, configOf, type Sections } from './gateway.ts';
import { patientWays } from './redis.ts';
import { createSteppingState, type Step } from './stepping-state.ts';

/** What the process is to do. */
export interface SteppingOrder {
  readonly sections: Sections;
  /** Where its state is. */
  readonly state: { readonly redis: string; readonly prefix: string } | { readonly file: string } | 'memory';
  /** Where each write is held, by its X-Request-ID. */
  readonly steps: Readonly<Record<string, Step>>;
}

/** What it tells its parent. The parent says one thing, at most once: that all go on. */
export type Told =
  | { readonly kind: 'serving'; readonly tppPort: number; readonly adminPort: number }
  | { readonly kind: 'reached'; readonly requestId: string };

const { sections, state, steps }: SteppingOrder = JSON.parse(process.argv[2] ?? '');
const tell = (told: Told) => void process.send?.(told);

const { promise: goOn, resolve } = Promise.withResolvers<void>();
process.once('message', () => resolve()).once('disconnect', () => process.exit());

const stepping = createSteppingState(stateOf(state), async (requestId, step) => {
  if (steps[requestId] !== step) return;
  tell({ kind: 'reached', requestId });
  await goOn;
});

const config = configOf({ listen: { port: 0 }, admin: { port: 0 }, ...sections });
const log = createLog({ level: 'error', format: 'json' }, { write: () => {} });
const gateway = createGateway(config, log, operatorsOf(config.admin, adminToken).operators, stepping);
tell({ kind: 'serving', ...(await gateway.start()) });

function stateOf(place: SteppingOrder['state']): State {
  if (place === 'memory') return createMemoryState();
  return 'file' in place ? createFileState(place.file) : patientWays(place.redis, place.prefix)();
}
