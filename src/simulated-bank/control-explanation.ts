/** What the control endpoint says about itself, so that nobody needs another page to use it. */
import type { SimulatedBank } from './bank.ts';
import { faultRows } from './faults.ts';

/** The bank's state in numbers, the calls there are, and all faults with their defaults. */
export function explanationOf(bank: SimulatedBank) {
  return {
    bank: bank.name,
    baseUrl: bank.baseUrl,
    counts: { requests: bank.requests.length, payments: bank.payments.length, connections: bank.connections },
    calls: {
      'GET /_bank/requests': 'every request whose header arrived, whatever became of it',
      'GET /_bank/payments': 'every payment created',
      'PUT /_bank/payments/{paymentId}':
        '{"transactionStatus": "RJCT"} from now on; null lets time decide again',
      'GET /_bank/faults': 'the faults that are still to strike',
      'PUT /_bank/faults':
        '{"name": "reset", "strikes": "after-effect", "times": 1, "operation": "initiatePayment"}, or a list of such',
      'DELETE /_bank/faults': 'heals',
      'GET /_bank/clock': "the bank's time",
      'PUT /_bank/clock': '{"advanceMs": 60000} lets a minute pass',
      'DELETE /_bank/': 'forgets requests, payments and faults',
    },
    strikes: ['before-reading', 'before-effect', 'after-effect'],
    faults: faultRows,
  };
}
