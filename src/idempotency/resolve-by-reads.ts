/**
 * Resolves writes in doubt whose effect a TPP's own read shows: then no operator has to ask the bank. The gateway sends no reads of its
 * own for this. A read never shows that a write did not happen: the bank may still execute it.
 */

import type { Operation } from '../pis/operations.ts';
import { identitiesOf } from '../request/identities.ts';
import type { PisRequest, PisResponse } from '../request/messages.ts';
import { contentOf, memberOf, transactionStatusIn } from '../request/read-content.ts';
import type { Handler } from '../request/stage.ts';
import type { InDoubtWrites, ReadableDoubt } from './in-doubt.ts';
import type { Resolve } from './resolve.ts';

/** Passes a read on, and checks its response in the background. */
export type ResolveByReads = (read: PisRequest, next: Handler<PisRequest>) => Promise<PisResponse>;

/** In the audit log. */
const who = 'gateway';

export function createResolveByReads(
  inDoubt: Pick<InDoubtWrites, 'readableDoubtsOf'>,
  resolve: Resolve,
): ResolveByReads {
  return (read, next) => {
    const found = inDoubt.readableDoubtsOf(read.operation.paymentId ?? '');
    return found.length === 0 ? next(read) : passOn(read, next, found);
  };

  async function passOn(
    read: PisRequest,
    next: Handler<PisRequest>,
    found: readonly ReadableDoubt[],
  ): Promise<PisResponse> {
    const response = await next(read);
    const { environmentWith } = identitiesOf(read);
    const ofThisBank = found.filter(
      ({ environment }) => environmentWith(environment) === response.environment,
    );
    void resolveShown(ofThisBank, read.operation, response).catch(() => {}); // the next read tries again
    return response;
  }

  async function resolveShown(
    doubts: readonly ReadableDoubt[],
    read: Operation,
    response: PisResponse,
  ): Promise<void> {
    if (response.status !== 200) return;
    const content = await contentOf(response);
    const shown: ShownStatuses = {
      transactionStatus: transactionStatusIn(content),
      scaStatus: content.kind === 'json' ? memberOf(content.json, 'scaStatus') : undefined,
    };
    for (const doubt of doubts) {
      const reason = whatShowsEffect(doubt, read, shown);
      if (reason !== undefined) await resolve({ id: doubt.id, who, outcome: 'happened', reason });
    }
  }
}

interface ShownStatuses {
  readonly transactionStatus: string | undefined;
  readonly scaStatus: unknown;
}

/** @returns the reason for the audit log; `undefined` if the read does not show that the write was executed */
function whatShowsEffect(
  { operation, path }: ReadableDoubt,
  read: Operation,
  { transactionStatus, scaStatus }: ShownStatuses,
): string | undefined {
  const status = read.readsStatus || read.showsStatus === 'transactionStatus' ? transactionStatus : undefined;
  if (status === 'CANC' && (operation === 'cancelPayment' || updatesCancellation(operation, path)))
    return 'a read of the payment shows the status CANC';
  if (operation === 'cancelPayment') return undefined;
  const isExecuted = status === 'ACSC' || status === 'ACCC';
  if (isExecuted && !updatesCancellation(operation, path))
    return `a read of the payment shows the status ${status}`;
  const isComplete = scaStatus === 'finalised' || scaStatus === 'exempted';
  return isComplete && read.showsStatus === 'scaStatus' && read.path === path
    ? `a read of the authorisation shows the status ${scaStatus}`
    : undefined;
}

/** A step of the authorisation of a cancellation: its path ends with the type and the id of the authorisation. */
const updatesCancellation = (operation: string, path: string): boolean =>
  operation === 'updatePsuData' && path.split('/').at(-2) === 'cancellation-authorisations';
