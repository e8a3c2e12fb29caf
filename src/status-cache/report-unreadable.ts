/** Reports statuses that the gateway cannot read: then nothing is cached for long, and webhooks and waiting reads see no change. */

import { LRUCache } from 'lru-cache';
import type { RoutedRequest } from '../request/messages.ts';
import { type Content, transactionStatusIn } from '../request/read-content.ts';
import type { Log } from '../telemetry/log.ts';

/** Adds the reason to the record of the request, if the content shows no status. Logs it once for each payment. */
export type ReportUnreadable = (request: RoutedRequest, paymentKey: string, content: Content) => void;

/** About 100 bytes each. A payment beyond them may be logged again. */
const maxPayments = 10_000;

export function createReportUnreadable(log: Log): ReportUnreadable {
  // `max` would reserve all memory at once.
  const logged = new LRUCache<string, true>({ maxSize: maxPayments, sizeCalculation: () => 1 });
  return ({ requestId, operation, environment, recordEvent }, paymentKey, content) => {
    const why = reasonIn(content, operation.readsStatus);
    if (why === undefined) return;
    recordEvent?.({ what: 'unreadable', why });
    if (logged.get(paymentKey)) return;
    logged.set(paymentKey, true);
    const fields = { requestId, operation: operation.name, environment: environment.name, why };
    log('warn', 'the status in a response of the bank cannot be read', fields);
  };
}

/** Only responses to status reads must contain a status. */
function reasonIn(content: Content, mustShowStatus: boolean): string | undefined {
  if (content.kind === 'unreadable') return content.why;
  if (!mustShowStatus || transactionStatusIn(content) !== undefined) return undefined;
  return content.kind === 'empty' ? 'an empty body' : 'no status, or several different ones';
}
