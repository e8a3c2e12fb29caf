/** The parts that receive the notifications of banks; they outlive a reload of the configuration. */

import type { PaymentOfTenant, StatusEvents } from '../request/statuses.ts';
import type { KeyValues } from '../state/ports.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { createPushGap } from './push-gap.ts';
import { createPushTokens, type PushTokens } from './push-tokens.ts';
import { createPushedPayments } from './pushed-payments.ts';
import { createPushReceiver, type PushReceiver } from './receive-pushes.ts';
import type { StatusReads } from './status-reads.ts';

export interface Pushes {
  readonly tokens: PushTokens;
  readonly receiver: PushReceiver;
}

interface PushesDependencies {
  /** Encrypted, if a key is configured. */
  readonly keyValues: KeyValues;
  readonly events: Pick<StatusEvents, 'publish'>;
  readonly reads: Pick<StatusReads, 'current'>;
  /** Makes the subscription of a payment due. @throws GatewayError STATE_UNAVAILABLE */
  readonly onPushed: (payment: PaymentOfTenant) => Promise<void>;
  /** `notifications.keepFor` */
  readonly keepForMs: () => number;
  readonly metrics: Pick<Metrics, 'increment'>;
}

export function createPushes({
  keyValues,
  events,
  reads,
  onPushed,
  keepForMs,
  metrics,
}: PushesDependencies): Pushes {
  /**
   * The pollers of all instances with listeners, and the webhook subscription, compete for one lease: one of them reads, with its own
   * credentials. If the status has changed, all of them are notified.
   */
  async function startRead(payment: PaymentOfTenant): Promise<void> {
    await reads.current?.statuses.expire(payment.paymentKey);
    events.publish({ what: 'pushed', ...payment });
    await onPushed(payment);
    metrics.increment('penstock_bank_notification_reads_total', {});
  }

  const gap = createPushGap({ keyValues, startRead });
  return {
    tokens: createPushTokens({ keyValues, keepForMs }),
    receiver: createPushReceiver({ payments: createPushedPayments(keyValues, keepForMs), gap }),
  };
}
