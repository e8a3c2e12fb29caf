/** Notifies the instances that the status of a payment has, or may have, changed. */

import type { StatusEvent, StatusEvents } from '../request/statuses.ts';
import type { PubSub } from '../state/ports.ts';

const channel = 'status-events';

/** One message per change, whoever listens: changes are rare. A lost one is found when the payment is read again. */
export function createStatusEvents(pubsub: PubSub): StatusEvents {
  return {
    publish(event) {
      pubsub.publish(channel, serialize(event)).catch(() => {});
    },
    subscribe: (listener) =>
      pubsub.subscribe(channel, (message) => {
        const event = parse(message);
        if (event) listener(event);
      }),
  };
}

const kinds: ReadonlySet<unknown> = new Set<StatusEvent['what']>(['changed', 'written', 'pushed']);
const isKnown = (what: unknown): what is StatusEvent['what'] => kinds.has(what);

const serialize = ({ what, paymentKey, tenantId }: StatusEvent) => `${what} ${paymentKey} ${tenantId}`;

/** @returns `undefined` for a message of a later release */
function parse(message: string): StatusEvent | undefined {
  const [, what, paymentKey = '', tenantId = ''] = /^(\S+) (\S+) (.+)$/s.exec(message) ?? [];
  return isKnown(what) ? { what, paymentKey, tenantId } : undefined;
}
