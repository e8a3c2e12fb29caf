/** Links to the page of a payment. */

import { h } from './dom.js';

/** @param label instead of the payment id */
export const paymentLink = (environment, paymentId, label = paymentId) =>
  h(
    'a',
    { class: 'id', href: `/payments/${encodeURIComponent(environment)}/${encodeURIComponent(paymentId)}` },
    label,
  );
