import assert from 'node:assert/strict';
import { createPaymentPolls, type PaymentPolls } from '../../src/notifications/poll-payment.ts';
import type { StatusReads } from '../../src/notifications/status-reads.ts';
import type { StatusEvents } from '../../src/request/statuses.ts';
import type { KeyValues } from '../../src/state/ports.ts';

/** The polls of payments of one instance. Without `reads`, it only takes leases. */
export const pollsOf = (
  keyValues: KeyValues,
  {
    events = { publish() {} },
    reads = { read: () => assert.fail('nothing is to be read') },
  }: {
    readonly events?: Pick<StatusEvents, 'publish'>;
    readonly reads?: Pick<StatusReads, 'read'>;
  } = {},
): PaymentPolls => createPaymentPolls({ keyValues, events, reads, metrics: { increment() {} } });
