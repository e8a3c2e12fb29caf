/**
 * A gateway as a process of its own, that holds writes at exact steps: it tells its parent where each stands, and goes
 * on when it is told to. Its argument is a `SteppingOrder` in JSON.
 */

import { configuredOperators } from '../../src/admin/authenticate-operator.ts';
import { createGateway } from '../../src/gateway.ts';
import { createMemoryState } from '../../src/state/memory.ts';
import type { State } from '../../src/state/ports.ts';
import { createSqliteState } from '../../src/state/sqlite.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { type Breakpoint, createBreakpointState } from './breakpoint-state.ts';
import { adminToken, configOf, type Sections } from './gateway.ts';
import { redisStateFactory } from './redis.ts';

/** What the process is to do. */
export interface BreakpointGatewayOptions {
  readonly sections: Sections;
  /** Where its state is. */
  readonly state: { readonly redis: string; readonly prefix: string } | { readonly file: string } | 'memory';
  /** Where each write is held, by its X-Request-ID. */
  readonly breakpoints: Readonly<Record<string, Breakpoint>>;
}

/** What it tells its parent. The parent says one thing, at most once: that all go on. */
export type BreakpointMessage =
  | { readonly kind: 'serving'; readonly tppPort: number; readonly adminPort: number }
  | { readonly kind: 'reached'; readonly requestId: string };

const { sections, state, breakpoints }: BreakpointGatewayOptions = JSON.parse(process.argv[2] ?? '');
const notify = (told: BreakpointMessage) => void process.send?.(told);

const { promise: goOn, resolve } = Promise.withResolvers<void>();
process.once('message', () => resolve()).once('disconnect', () => process.exit());

const stepping = createBreakpointState(stateOf(state), async (requestId, step) => {
  if (breakpoints[requestId] !== step) return;
  notify({ kind: 'reached', requestId });
  await goOn;
});

const config = configOf({ listen: { port: 0 }, admin: { port: 0 }, ...sections });
const log = createLog({ level: 'error', format: 'json' }, { write: () => {} });
const gateway = createGateway(config, log, configuredOperators(config.admin, adminToken).operators, stepping);
notify({ kind: 'serving', ...(await gateway.start()) });

function stateOf(place: BreakpointGatewayOptions['state']): State {
  if (place === 'memory') return createMemoryState();
  return 'file' in place ? createSqliteState(place.file) : redisStateFactory(place.redis, place.prefix)();
}
