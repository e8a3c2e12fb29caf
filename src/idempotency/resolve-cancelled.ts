/**
 * Resolves cancellations in doubt: if a TPP's read of the payment shows that it is cancelled, no operator has to ask the
 * bank. The gateway sends no reads of its own for this.
 */

import { identitiesOf } from '../request/identities.ts';
import type { PisRequest, PisResponse } from '../request/messages.ts';
import { contentOf, transactionStatusIn } from '../request/read-content.ts';
import type { Handler } from '../request/stage.ts';
import type { InDoubtCancellation, InDoubtWrites } from './recovery.ts';
import type { Resolve } from './resolve.ts';

/** Passes a read on, and checks its response in the background. */
export type ResolveCancelled = (read: PisRequest, next: Handler<PisRequest>) => Promise<PisResponse>;

/** In the audit log. */
const who = 'gateway';
const reason = 'a read of the payment shows the status CANC';

export function createResolveCancelled(
  inDoubt: Pick<InDoubtWrites, 'cancellationsOf'>,
  resolve: Resolve,
): ResolveCancelled {
  return (read, next) => {
    const found = inDoubt.cancellationsOf(read.operation.paymentId ?? '');
    return found.length === 0 ? next(read) : passOn(read, next, found);
  };

  async function passOn(
    read: PisRequest,
    next: Handler<PisRequest>,
    found: readonly InDoubtCancellation[],
  ): Promise<PisResponse> {
    const response = await next(read);
    const { environmentWith } = identitiesOf(read);
    const ofThisBank = found.filter(
      ({ environment }) => environmentWith(environment) === response.environment,
    );
    void resolveIfCancelled(ofThisBank, response).catch(() => {}); // the next read tries again
    return response;
  }

  async function resolveIfCancelled(
    cancellations: readonly InDoubtCancellation[],
    response: PisResponse,
  ): Promise<void> {
    if (!(await showsCancelled(response))) return;
    for (const { id } of cancellations) await resolve({ id, who, outcome: 'happened', reason });
  }
}

const showsCancelled = async (response: PisResponse): Promise<boolean> =>
  response.status === 200 && transactionStatusIn(await contentOf(response)) === 'CANC';
