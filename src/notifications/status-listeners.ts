/** The waiting reads and event streams of this instance: their number is limited, and draining ends them. */

import { GatewayError } from '../request/errors.ts';

export type StatusListenerKind = 'wait' | 'stream';

export interface OpenStatusListener {
  /** To be called after the first read, when it begins to wait for a change. */
  listen(): void;
  close(): void;
}

export interface StatusListeners {
  /**
   * To be called before the first read, so that the bank is not asked if there is no room.
   *
   * @param maxPerTenant `notifications.maxWaiting`
   * @param end          called when the listener must end
   * @throws GatewayError OVERLOADED if too many are open
   */
  open(tenantId: string, kind: StatusListenerKind, maxPerTenant: number, end: () => void): OpenStatusListener;
  /** Whether listeners must end at once. */
  isDraining(): boolean;
  /** Ends all listeners. */
  drain(): void;
  /** Ends the streams at a reload: their clients may have another configuration when they connect again. */
  endStreams(): void;
  /** How many wait for a change. */
  count(kind: StatusListenerKind): number;
}

/** @param maxOpen of all tenants together, because each of them occupies a connection */
export function createStatusListeners(maxOpen: number): StatusListeners {
  // Listeners live long, so they may be in Maps and Sets (linked-list.ts).
  const ends = { wait: new Set<() => void>(), stream: new Set<() => void>() };
  const listening = { wait: new Set<() => void>(), stream: new Set<() => void>() };
  const byTenant = new Map<string, number>();
  let draining = false;

  return {
    open(tenantId, kind, maxPerTenant, onEnd) {
      const ofTenant = byTenant.get(tenantId) ?? 0;
      if (ends.wait.size + ends.stream.size >= maxOpen || ofTenant >= maxPerTenant)
        throw tooManyStatusListeners();
      byTenant.set(tenantId, ofTenant + 1);
      const end = () => onEnd(); // the same function may be opened twice
      ends[kind].add(end);
      return {
        listen: () => void listening[kind].add(end),
        close() {
          if (!ends[kind].delete(end)) return;
          listening[kind].delete(end);
          const left = (byTenant.get(tenantId) ?? 1) - 1;
          if (left === 0) byTenant.delete(tenantId);
          else byTenant.set(tenantId, left);
        },
      };
    },
    isDraining: () => draining,
    drain() {
      draining = true;
      for (const end of [...ends.wait, ...ends.stream]) end();
    },
    endStreams() {
      for (const end of [...ends.stream]) end();
    },
    count: (kind) => listening[kind].size,
  };
}

const tooManyStatusListeners = (): GatewayError =>
  new GatewayError(
    'OVERLOADED',
    'Too many status reads are waiting for a change. Read the status without waiting, or try again.',
  );
