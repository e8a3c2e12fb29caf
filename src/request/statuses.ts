/** The status of a payment, for those that wait for its change. The status cache implements these interfaces. */

import type { HeaderFields } from '../pis/headers.ts';
import type { Finality } from '../pis/transaction-status.ts';
import type { PisResponse, RoutedRequest } from './messages.ts';

/** The status that a successful response to a status read shows. */
export interface ShownStatus {
  /** Equal for equal statuses of one payment. */
  readonly hash: string;
  /** The transaction status; `undefined` if the response names none: then the hash is that of the body. */
  readonly code: string | undefined;
  readonly finality: Finality;
}

/** What the shared state contains about the status of a payment. Times in milliseconds since 1970. */
export interface RecordedStatus {
  /** Changes with every change of the status, and around every write. Empty if nothing is known of the payment. */
  readonly generation: string;
  /** Of the status; `undefined` since the last change or write, until it is read again. */
  readonly hash: string | undefined;
  /** Since when the payment is known to have this status. */
  readonly sinceMs: number;
  /** When the newest stored response was fetched; 0 if none is stored, or the bank has sent a notification since. */
  readonly readAtMs: number;
}

/** A payment of one tenant. */
export interface PaymentOfTenant {
  /** The identity of the tenant. */
  readonly tenantId: string;
  /** The key of the payment in the shared state. */
  readonly paymentKey: string;
}

/** The fact that a status has, or may have, changed; without the status. */
export interface StatusEvent extends PaymentOfTenant {
  /**
   * `changed`: a read has shown another status than the recorded one. `written`: a write or an authorisation has ended, so the
   * status may have changed. `pushed`: the bank has sent a notification (a name in messages between instances).
   */
  readonly what: 'changed' | 'written' | 'pushed';
}

export interface StatusEvents {
  /** Notifies all instances, this one included. Never fails; a message may be lost. */
  publish(event: StatusEvent): void;
  /** @returns unsubscribes */
  subscribe(listener: (event: StatusEvent) => void): () => void;
}

export interface Statuses {
  /** Whether the status cache is in use. Without it, there are no tags, and nobody can wait. */
  readonly enabled: boolean;
  /** How a read with these fields uses the cache. */
  cacheUseOf(headers: HeaderFields): StatusListenerCacheUse;
  keyOf(request: RoutedRequest): PaymentOfTenant;
  /** @param response a successful one to this status read */
  shownBy(request: RoutedRequest, response: PisResponse): Promise<ShownStatus>;
  /** `undefined` if the shared state is unavailable. */
  recorded(paymentKey: string): Promise<RecordedStatus | undefined>;
  /**
   * Whether the payment still has this status, as far as can be known without asking the bank: also if the shared state is
   * unavailable, unless this instance knows better.
   */
  isCurrent(paymentKey: string, hash: string): Promise<boolean>;
  /** The next read of the payment asks the bank. @throws GatewayError STATE_UNAVAILABLE */
  expire(paymentKey: string): Promise<void>;
}

export interface StatusListenerCacheUse {
  /** The response is for this read only: it has a `Signature`, a `Range`, or a condition. */
  readonly isBypassed: boolean;
  /** Whether the read may wait: it uses the cache, and accepts what is in it. */
  readonly mayWait: boolean;
  /** Whether a stream of events may begin with the read: its response may be shared. */
  readonly mayStream: boolean;
}
