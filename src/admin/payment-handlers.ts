/** The handlers for payments: a list, and the history of one. */

import type { PaymentViews } from '../payments/payment-views.ts';
import { AdminRefusal } from './admin-refusal.ts';
import { cursorOf, positionIn } from './payment-schemas.ts';
import type { AdminApi } from './routes.ts';

export interface PaymentDependencies {
  readonly payments: PaymentViews;
}

export const createPaymentHandlers = ({
  payments,
}: PaymentDependencies): Pick<AdminApi, 'listPayments' | 'showPayment'> => ({
  async listPayments({ query: { from, to, cursor, ...filter } }) {
    const { next, ...page } = await payments.list({
      ...filter,
      fromMs: from === undefined ? undefined : Date.parse(from),
      toMs: to === undefined ? undefined : Date.parse(to),
      after: cursor === undefined ? undefined : positionIn(cursor),
    });
    return { ...page, cursor: next ? cursorOf(next) : null };
  },

  async showPayment({ parameters: { environment, paymentId } }) {
    const mayExist = !`${environment}${paymentId}`.includes('\0'); // PostgreSQL refuses such a text
    const found = mayExist ? await payments.find(environment, paymentId) : undefined;
    if (found) return found;
    throw new AdminRefusal(404, 'No payment with this id is stored in this environment.');
  },
});
