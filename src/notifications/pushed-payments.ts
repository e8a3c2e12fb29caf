/**
 * Which payment a token belongs to. The gateway sends the token before the bank names the payment, so that a bank can notify it earlier
 * than the payment is recorded. Such a notification is kept until then.
 */

import type { PaymentOfTenant } from '../request/statuses.ts';
import type { KeyValues } from '../state/ports.ts';

export interface PushedPayments {
  /**
   * Finds the payment of a token. If it is not recorded yet, that it was asked for is recorded.
   *
   * @param id of the token
   * @throws GatewayError STATE_UNAVAILABLE, here and below
   */
  find(id: string): Promise<PaymentOfTenant | undefined>;
  /** @returns whether the bank has sent a notification before */
  record(id: string, payment: PaymentOfTenant): Promise<boolean>;
}

/** Longer than a call to the bank can take: then its response has arrived, or is lost. Milliseconds. */
const earlyMs = 15 * 60_000;
const early = 'early';

const keyOf = (id: string) => `push:token:${id}`;

/** @param keepForMs how long a payment is recorded */
export function createPushedPayments(
  keyValues: Pick<KeyValues, 'read' | 'write' | 'writeIfAbsent'>,
  keepForMs: () => number,
): PushedPayments {
  return {
    async find(id) {
      const stored = await keyValues.read(keyOf(id));
      if (stored !== undefined) return parse(stored);
      if (await keyValues.writeIfAbsent(keyOf(id), early, earlyMs)) return undefined;
      return parse((await keyValues.read(keyOf(id))) ?? early); // recorded since the first read
    },
    async record(id, payment) {
      const text = serialize(payment);
      if (await keyValues.writeIfAbsent(keyOf(id), text, keepForMs())) return false;
      await keyValues.write(keyOf(id), text, keepForMs());
      return true;
    },
  };
}

const serialize = ({ paymentKey, tenantId }: PaymentOfTenant) => `1 ${paymentKey} ${tenantId}`;

/** @returns `undefined` if no payment is recorded, or by a later release */
function parse(text: string): PaymentOfTenant | undefined {
  const [, paymentKey = '', tenantId = ''] = /^1 (\S+) (.+)$/s.exec(text) ?? [];
  return paymentKey === '' ? undefined : { paymentKey, tenantId };
}
