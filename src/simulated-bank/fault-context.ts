/** One request and the ways to treat it well or badly: what the strikes work with. */
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { BankResponse } from './bank-response.ts';

/** One exchange with a client. */
export interface FaultContext {
  /** What the bank would answer if nothing were wrong. */
  readonly answer: BankResponse;
  readonly response: ServerResponse;
  /** The connection, for bytes that no HTTP library would send. */
  readonly socket: Duplex;
  /** Resets the TCP connection (RST), under TLS as well. */
  reset(): void;
  /** Closes all connections on which no request is under way. */
  closeIdle(): void;
  /** @returns `false` if the bank was stopped meanwhile */
  wait(ms: number): Promise<boolean>;
}
