/**
 * A gateway process that pauses writes at breakpoints: it notifies its parent of each breakpoint, and continues when the
 * parent sends a message. Its argument is `BreakpointGatewayOptions` as JSON.
 */

import { assembleGateway } from '../../src/gateway.ts';
import { createMemoryState } from '../../src/state/memory.ts';
import type { State } from '../../src/state/ports.ts';
import { openGatewayDatabase } from '../../src/store/gateway-database.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createBreakpointDatabase } from './breakpoint-database.ts';
import { type Breakpoint, createBreakpointState } from './breakpoint-state.ts';
import { migrateFor } from './database.ts';
import { configOf, readTestCredentials, type Sections } from './gateway.ts';
import { redisStateFactory } from './redis.ts';

export interface BreakpointGatewayOptions {
  readonly sections: Sections;
  readonly state:
    | { readonly postgres: string; readonly redis: string; readonly prefix: string }
    | { readonly file: string }
    | 'memory';
  /** Where each write is paused, by its X-Request-ID. */
  readonly breakpoints: Readonly<Record<string, Breakpoint>>;
}

/** A message to the parent. The parent sends one message at most, which lets all writes continue. */
export type BreakpointMessage =
  | { readonly kind: 'serving'; readonly tppPort: number; readonly adminPort: number }
  | { readonly kind: 'reached'; readonly requestId: string };

const { sections, state, breakpoints }: BreakpointGatewayOptions = JSON.parse(process.argv[2] ?? '');
const notify = (message: BreakpointMessage) => void process.send?.(message);

const { promise: continued, resolve } = Promise.withResolvers<void>();
process.once('message', () => resolve()).once('disconnect', () => process.exit());

const onBreakpoint = async (requestId: string, breakpoint: Breakpoint) => {
  if (breakpoints[requestId] !== breakpoint) return;
  notify({ kind: 'reached', requestId });
  await continued;
};

const config = configOf({
  ...{ listen: { port: 0 }, admin: { port: 0 }, ...sections },
  state: state === 'memory' ? {} : state,
});
await migrateFor(config);
const { database, heartbeatDatabase } = openGatewayDatabase(config.state);
const log = createLog({ level: 'error', format: 'json' }, { write: () => {} });
const gateway = assembleGateway(config, log, readTestCredentials, {
  ...{ database: createBreakpointDatabase(database, onBreakpoint), heartbeatDatabase },
  state: createBreakpointState(createState(state), onBreakpoint),
});
notify({ kind: 'serving', ...(await gateway.start()) });

function createState(options: BreakpointGatewayOptions['state']): State {
  if (options === 'memory' || 'file' in options) return createMemoryState();
  return redisStateFactory(options.redis, options.prefix)();
}
