/** What waiting reads and event streams share: a first read, and then a listener that is woken. */

import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import type { Handler } from '../request/stage.ts';
import type { ShownStatus, Statuses } from '../request/statuses.ts';
import { pollTargetOf } from './poll-target.ts';
import type { Poller, StatusListener } from './poller.ts';
import { withoutSignature } from './tpp-signature.ts';
import type { WakeUp } from './wake-up.ts';

/** A status read whose response may be followed by another status. */
export interface FirstRead {
  readonly request: RoutedRequest;
  /** That of the request when it arrived. */
  readonly signal: RoutedRequest['signal'];
  /** Reads the status once more, in the same way. */
  readonly next: Handler<RoutedRequest>;
  readonly response: PisResponse;
  /** The status of `response`. */
  readonly shown: ShownStatus;
}

export interface LaterReadsDependencies {
  readonly statuses: Pick<Statuses, 'cacheUseOf'>;
  /** Whether the gateway signs the requests to this environment. */
  readonly signs: (environment: string) => boolean;
}

/**
 * How the reads that follow the first one use the cache. The gateway signs them itself, or they cannot be sent: the signature of the
 * TPP belongs to the first one only.
 */
export function laterReadsOf(
  { statuses, signs }: LaterReadsDependencies,
  { environment }: RoutedRequest,
): Pick<Statuses, 'cacheUseOf'> {
  if (!signs(environment.name)) return statuses;
  return { cacheUseOf: (headers) => statuses.cacheUseOf(withoutSignature(headers)) };
}

interface ListeningStatus {
  readonly listener: StatusListener;
  readonly stop: () => void;
}

/** Wakes when the status has probably changed, when the bank refuses the credentials, and when the client has disconnected. */
export function listenToStatus(
  { poller, statuses }: { readonly poller: Poller; readonly statuses: Pick<Statuses, 'keyOf'> },
  { request, signal, shown }: Pick<FirstRead, 'request' | 'signal' | 'shown'>,
  wakeUp: WakeUp,
): ListeningStatus {
  const disconnect = () => wakeUp.end('disconnected');
  signal?.addEventListener('abort', disconnect, { once: true });
  if (signal?.aborted) disconnect();
  const listener: StatusListener = {
    urgency: 'listener',
    target: pollTargetOf(request, statuses.keyOf(request)),
    known: shown,
    onChange: wakeUp.wake,
    onRefused: wakeUp.wake,
  };
  const stopListening = poller.listen(listener);
  return {
    listener,
    stop() {
      signal?.removeEventListener('abort', disconnect);
      stopListening();
    },
  };
}
