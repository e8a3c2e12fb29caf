/** One request with the operations that faults apply to it. */
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { SimulatedResponse } from './simulated-response.ts';

/** A request and its connection, as the fault handlers receive them. */
export interface FaultContext {
  /** The response that the bank would send without the fault. */
  readonly bankResponse: SimulatedResponse;
  readonly response: ServerResponse;
  /** The connection, for bytes that no HTTP library sends. */
  readonly socket: Duplex;
  /** Resets the TCP connection (RST), under TLS as well. */
  reset(): void;
  /** Closes all connections without a request in progress. */
  closeIdle(): void;
  /** @returns `false` if the bank was stopped in the meantime */
  wait(ms: number): Promise<boolean>;
}
