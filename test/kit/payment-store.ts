/** A store of a caller's payments, for examples/callers/submit-payment.ts. */

import type { PaymentStore, StoredPayment } from '../../examples/callers/submit-payment.ts';

/** Keeps payments as text in memory, as a database does: each read returns a copy. */
export function createPaymentStore(): PaymentStore & { all(): readonly StoredPayment[] } {
  const texts = new Map<string, string>();
  const read = (text: string): StoredPayment => JSON.parse(text);
  const all = () => [...texts.values()].map(read);
  return {
    async create(payment) {
      texts.set(payment.requestId, JSON.stringify(payment));
    },
    async update(requestId, change) {
      const text = texts.get(requestId);
      if (text === undefined) throw new Error(`no payment ${requestId}`);
      const changed = JSON.stringify(change(read(text)));
      texts.set(requestId, changed);
      return read(changed);
    },
    unfinished: async () => all().filter(({ outcome }) => outcome === undefined),
    all,
  };
}
