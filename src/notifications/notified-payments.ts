/**
 * Stores which payment a token belongs to. The gateway sends the token before it knows the payment id, so a notification can arrive
 * before the payment is stored. Such a notification leaves a mark, which takes effect when the payment is stored.
 */

import type { PaymentOfTenant } from '../request/statuses.ts';
import type { KeyValues } from '../state/ports.ts';

export interface NotifiedPayments {
  /**
   * Finds the payment of a token. If it is not stored yet, leaves a mark for `record`.
   *
   * @param id of the token
   * @throws GatewayError STATE_UNAVAILABLE, here and below
   */
  find(id: string): Promise<PaymentOfTenant | undefined>;
  /** Stores the payment of a token. @returns whether a notification has left a mark before */
  record(id: string, payment: PaymentOfTenant): Promise<boolean>;
}

/** How long a mark is kept. Longer than a call to the bank can take. Milliseconds. */
const earlyMs = 15 * 60_000;
const early = 'early';

const keyOf = (id: string) => `push:token:${id}`;

/** @param keepForMs how long a payment is stored */
export function createNotifiedPayments(
  keyValues: Pick<KeyValues, 'read' | 'write' | 'writeIfAbsent'>,
  keepForMs: () => number,
): NotifiedPayments {
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

/** @returns `undefined` for a mark, and for the format of a later release */
function parse(text: string): PaymentOfTenant | undefined {
  const [, paymentKey = '', tenantId = ''] = /^1 (\S+) (.+)$/s.exec(text) ?? [];
  return paymentKey === '' ? undefined : { paymentKey, tenantId };
}
