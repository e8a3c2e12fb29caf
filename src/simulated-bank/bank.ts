/** What a simulated bank offers to whoever holds it. */
import type { TlsOptions } from 'node:tls';
import type { Clock } from './clock.ts';
import type { PendingFault } from './fault-queue.ts';
import type { Fault, FaultScope } from './faults.ts';
import type { LinkStyle } from './links.ts';
import type { PaymentTimings } from './payment-lifecycle.ts';
import type { PaymentView } from './payments.ts';
import type { LoggedRequest } from './request-log.ts';

/** How a bank is built; everything has a default. */
export interface BankOptions {
  /** Begins its payment ids and names its web site; lower-case letters and digits. Default `bank`. */
  readonly name?: string;
  /** What stands before the segment, such as `/xs2a`. Default: nothing. */
  readonly basePath?: string;
  /** What stands before `/v1`: none to several path segments. Default `berlingroup`. */
  readonly segment?: string;
  /** Default `absolute`. */
  readonly links?: LinkStyle;
  /** Origin of absolute links where the bank is reached under another name than it listens on. */
  readonly publicOrigin?: string;
  /** Default: the machine's time. */
  readonly clock?: Clock;
  readonly timings?: Partial<PaymentTimings>;
  /** Makes it listen on https. With `requestCert` and `ca` it wants a client certificate. */
  readonly tls?: Pick<TlsOptions, 'key' | 'cert' | 'ca' | 'requestCert' | 'rejectUnauthorized'>;
  /** A certificate as PEM: refuses every request without a valid signature by a seal that this authority has issued. */
  readonly sealAuthority?: string;
}

/** A bank that speaks the eight operations, counts what reaches it, and fails on demand. */
export interface SimulatedBank {
  readonly name: string;
  /** What a gateway is told to call: origin and base path, without segment. @throws Error before `start` */
  readonly baseUrl: string;
  /** Everything whose header reached it, whatever became of it; the control endpoint's calls are not in it. */
  readonly requests: readonly LoggedRequest[];
  /** Every payment it created, in order, with the status it has now. */
  readonly payments: readonly PaymentView[];
  /** TCP connections accepted so far, unused ones and the control endpoint's included. */
  readonly connections: number;
  /** Requests refused because they were not well-formed HTTP; they are in no log. */
  readonly malformed: number;
  /** The faults that are still to strike. */
  readonly faults: readonly PendingFault[];
  readonly clock: Clock;
  /** Listens; port 0 (the default) takes a free one. May be called again after `stop`. @returns `baseUrl` */
  start(port?: number, host?: string): Promise<string>;
  /** Drops all connections and stops listening. What it knows stays; harmless if it is not running. */
  stop(): Promise<void>;
  /** Has a fault strike the next requests that fit, behind those set before. */
  injectFault(fault: Fault, scope?: FaultScope): void;
  /** Takes back all faults; what has been struck already stays struck. */
  clearFaults(): void;
  /** Reports this status for a payment, any string, until `undefined` gives it back to the clock. @returns `false` if unknown */
  setStatus(paymentId: string, status: string | undefined): boolean;
  /** Gives the next payment this id. */
  nextPaymentId(id: string): void;
  /**
   * Waits for something to have happened here, such as `() => bank.payments.length === 1`: asked again whenever
   * a request or a piece of its body has arrived, it was carried out, or it is over. @throws Error after `withinMs`, by default 5 s
   */
  waitUntil(condition: () => boolean, withinMs?: number): Promise<void>;
  /** Forgets requests, payments and faults. */
  reset(): void;
}
