/** The parts that receive the notifications of banks; they outlive a reload of the configuration. */

import type { EncryptionKeys } from '../config/encryption-keys.ts';
import type { PaymentOfTenant, StatusEvents } from '../request/statuses.ts';
import { createTextEncryption } from '../state/encryption.ts';
import type { KeyValues } from '../state/ports.ts';
import type { BankNotificationTable } from '../store/bank-notifications.ts';
import { deleteInBatches } from '../store/delete-in-batches.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { createBankNotificationGap } from './bank-notification-gap.ts';
import { type BankNotificationTokens, createBankNotificationTokens } from './bank-notification-tokens.ts';
import {
  type BankNotificationReceiver,
  createBankNotificationReceiver,
} from './receive-bank-notifications.ts';
import type { StatusReads } from './status-reads.ts';

export interface BankNotifications {
  readonly tokens: BankNotificationTokens;
  readonly receiver: BankNotificationReceiver;
  /** Deletes the payments of expired tokens. @throws DatabaseError */
  readonly deleteExpired: () => Promise<void>;
}

interface BankNotificationsDependencies {
  readonly table: BankNotificationTable;
  /** The secret of the tokens is encrypted with the first one. */
  readonly keys: readonly [] | EncryptionKeys;
  readonly keyValues: KeyValues;
  readonly events: Pick<StatusEvents, 'publish'>;
  readonly reads: Pick<StatusReads, 'current'>;
  /** Makes the subscription of a payment due. @throws DatabaseError */
  readonly onBankNotification: (payment: PaymentOfTenant) => Promise<void>;
  /** `notifications.keepFor` */
  readonly keepForMs: () => number;
  readonly metrics: Pick<Metrics, 'increment'>;
}

export function createBankNotifications({
  table,
  keys,
  keyValues,
  events,
  reads,
  onBankNotification,
  keepForMs,
  metrics,
}: BankNotificationsDependencies): BankNotifications {
  /**
   * The pollers of all instances with listeners, and the webhook subscription, compete for one lease: one of them reads, with its own
   * credentials. If the status has changed, all of them are notified.
   */
  async function startRead(payment: PaymentOfTenant): Promise<void> {
    await reads.current?.statuses.expire(payment.paymentKey);
    events.publish({ what: 'pushed', ...payment });
    await onBankNotification(payment);
    metrics.increment('penstock_bank_notification_reads_total', {});
  }

  const gap = createBankNotificationGap({ keyValues, startRead });
  return {
    tokens: createBankNotificationTokens({ table, encryption: createTextEncryption(keys), keepForMs }),
    receiver: createBankNotificationReceiver({ payments: table, keepForMs, gap }),
    deleteExpired: () =>
      deleteInBatches(async (limit) => ({ rows: await table.deleteExpired(limit), newest: 0 })),
  };
}
