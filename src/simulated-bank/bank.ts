/** The interface of a simulated bank. */
import type { TlsOptions } from 'node:tls';
import type { BankClock } from './clock.ts';
import type { PendingFault } from './fault-queue.ts';
import type { Fault, FaultScope } from './faults.ts';
import type { LinkStyle } from './links.ts';
import type { SentNotification } from './notifications.ts';
import type { PaymentTimings } from './payment-lifecycle.ts';
import type { PaymentView } from './payments.ts';
import type { BankProfileSettings } from './profile.ts';
import type { LoggedRequest } from './request-log.ts';

/** Options of a bank; everything has a default. */
export interface BankOptions {
  /** Prefix of its payment ids and name of its web site; lower-case letters and digits. Default `bank`. */
  readonly name?: string;
  /** The forms of its interface; the next three options override them. */
  readonly profile?: BankProfileSettings;
  /** The path before the segment, such as `/xs2a`. Default: none. */
  readonly basePath?: string;
  /** The path between base path and `/v1`: zero or more path segments. Default `berlingroup`. */
  readonly segment?: string;
  /** Default `absolute`. */
  readonly links?: LinkStyle;
  /** Origin of absolute links, if clients reach the bank under another origin than it listens on. */
  readonly publicOrigin?: string;
  /**
   * Whether `scaRedirect` leads to a page of this bank where a person approves or rejects, if the bank listens on loopback, demands no
   * client certificate, and its profile has no other link. Default: to a web site that does not exist.
   */
  readonly approvalPage?: boolean;
  /** Default: the machine's time. */
  readonly clock?: BankClock;
  readonly timings?: Partial<PaymentTimings>;
  /** Listens on https. With `requestCert` and `ca` the bank requires a client certificate. */
  readonly tls?: Pick<TlsOptions, 'key' | 'cert' | 'ca' | 'requestCert' | 'rejectUnauthorized'>;
  /** A CA certificate as PEM: refuses every request without a valid signature by a QSealC of this CA. */
  readonly sealAuthority?: string;
  /** A CA certificate as PEM: trusted for the URIs of notifications, in place of the CA certificates of Node. */
  readonly notificationAuthority?: string;
}

/** A bank with the eight operations that counts the requests it receives and fails on demand. */
export interface SimulatedBank {
  readonly name: string;
  /** The gateway's `baseUrl` setting: origin and base path, without segment. @throws Error before `start` */
  readonly baseUrl: string;
  /** The path of an initiation before `/{payment-service}`, such as `/psd2/berlingroup/v1`. */
  readonly path: string;
  /** Every request whose header has arrived, whatever its outcome, without calls of the control endpoint. */
  readonly requests: readonly LoggedRequest[];
  /** Every payment it created, in order, with its current status. */
  readonly payments: readonly PaymentView[];
  /** TCP connections accepted so far, including unused ones and those of the control endpoint. */
  readonly connections: number;
  /** Requests refused because they were not well-formed HTTP; they are not in `requests`. */
  readonly malformed: number;
  /** The faults that are still pending. */
  readonly faults: readonly PendingFault[];
  readonly clock: BankClock;
  /** The attempts to notify TPPs, in order. */
  readonly notifications: readonly SentNotification[];
  /** Whether it notifies TPPs that ask for it; at first it does not, like most banks. */
  notifiesTpps: boolean;
  /** Listens; port 0 (the default) takes a free one. May be called again after `stop`. @returns `baseUrl` */
  start(port?: number, host?: string): Promise<string>;
  /** Closes all connections and stops listening. Requests and payments are kept. Has no effect if the bank is stopped. */
  stop(): Promise<void>;
  /** Applies a fault to the next requests that match, after those injected before. */
  injectFault(fault: Fault, scope?: FaultScope): void;
  /** Removes all pending faults; requests that a fault has already affected stay affected. */
  clearFaults(): void;
  /** Ends the delays of requests that a fault affects at this moment, such as `latency`: they continue at once. */
  endDelays(): void;
  /** Reports this status for a payment, any string; `undefined` returns to the status by time. @returns `false` if unknown */
  setStatus(paymentId: string, status: string | undefined): boolean;
  /** Sets the id of the next payment. */
  nextPaymentId(id: string): void;
  /**
   * Waits until a condition holds, such as `() => bank.payments.length === 1`. The condition is checked whenever a request
   * or a part of its body arrives, is executed, or ends. @throws Error after `withinMs`, by default 5 s
   */
  waitUntil(condition: () => boolean, withinMs?: number): Promise<void>;
  /** Removes requests, payments and faults. */
  reset(): void;
}
