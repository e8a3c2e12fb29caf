/** The self-description of the control endpoint. */
import type { SimulatedBank } from './bank.ts';
import { payerCredentials } from './embedded-sca.ts';
import { faultRows } from './faults.ts';

/** The bank's state in numbers, the available calls, and all faults with their defaults. */
export function explanationOf(bank: SimulatedBank) {
  return {
    bank: bank.name,
    baseUrl: bank.baseUrl,
    payer: payerCredentials,
    counts: { requests: bank.requests.length, payments: bank.payments.length, connections: bank.connections },
    calls: {
      'GET /_bank/requests': 'all requests whose header has arrived, with their outcome',
      'GET /_bank/payments': 'all payments',
      'PUT /_bank/payments/{paymentId}':
        '{"transactionStatus": "RJCT"} sets the status; null returns to the status by time',
      'GET /_bank/faults': 'the pending faults',
      'PUT /_bank/faults':
        '{"name": "reset", "strikes": "after-effect", "times": 1, "operation": "initiatePayment"}, or a list of them',
      'DELETE /_bank/faults': 'removes all pending faults',
      'GET /_bank/notifications': 'whether the bank notifies TPPs (TPP-Notification-URI), and all attempts',
      'PUT /_bank/notifications': '{"enabled": true} switches notifications on, for requests from now on',
      'GET /_bank/clock': "the bank's time",
      'PUT /_bank/clock': '{"advanceMs": 60000} advances it by a minute',
      'DELETE /_bank/': 'removes requests, payments and faults',
    },
    strikes: ['before-reading', 'before-effect', 'after-effect'],
    faults: faultRows,
  };
}
