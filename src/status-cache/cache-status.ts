/**
 * STAGE 4. Answers status reads from the cache, and makes writes forget what they may change.
 *
 * When the bank fails, the last status known is served, marked as stale: a TPP that polls is better off with an old
 * truth than with an error. Without the shared state, the bank is asked.
 */

import { asGatewayError, GatewayError } from '../flow/errors.ts';
import type { PisResponse, RoutedRequest } from '../flow/messages.ts';
import type { Handler, Stage } from '../flow/stage.ts';
import { wishOf } from './directives.ts';
import type { Forgetting } from './forgetting.ts';
import { documentKey } from './place.ts';
import type { StatusReads } from './read-status.ts';

/** What the stage works with. */
export interface StatusCache {
  readonly enabled: boolean;
  readonly reads: StatusReads;
  readonly forgetting: Forgetting;
  readonly ifStateFails: 'refuse' | 'allow';
}

export function cacheStatus(cache: StatusCache): Stage<RoutedRequest> {
  return async (request, next) => {
    if (!cache.enabled) return next(request);
    if (request.operation.changesStatus) return forgetAround(cache, request, next);
    if (!request.operation.readsStatus) return next(request);

    switch (wishOf(request)) {
      case 'leave-the-cache-alone':
        return cache.reads.pass(request, next);
      case 'only-if-cached':
        return (await cache.reads.known(request)) ?? notCached();
      case 'impossible':
        return notCached();
      case 'ask-the-bank':
        return cache.reads.ask(request, next);
      case 'any':
        return cache.reads.answer(request, next);
    }
  };
}

/** Forgets the payment before the bank may act and after it has: no older answer can come back in between. */
async function forgetAround(
  { forgetting, ifStateFails }: StatusCache,
  request: RoutedRequest,
  next: Handler<RoutedRequest>,
): Promise<PisResponse> {
  const key = documentKey(request.environment.name, request.operation.paymentId ?? '');
  await forgetting.now(key).catch((thrown: unknown) => {
    if (ifStateFails === 'refuse') throw asGatewayError(thrown);
    forgetting.later(key);
  });
  try {
    return await next(request);
  } finally {
    await forgetting.nowOrLater(key);
  }
}

function notCached(): never {
  throw new GatewayError(
    'NOT_CACHED',
    'No status of this payment is known here; ask without only-if-cached.',
  );
}
