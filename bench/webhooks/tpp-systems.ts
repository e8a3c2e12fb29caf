/** The TPP systems of the benchmark: each initiates payments and subscribes to their statuses, and repeats what was not answered. */

import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { callOnce, type Reply } from '../../test/kit/call.ts';
import { initiation } from '../../test/kit/request.ts';
import type { EndpointKind } from './endpoint-kinds.ts';
import { urlOf } from './endpoints.ts';

/** A payment that was initiated with a subscription. */
export interface Initiated {
  /** In the URL of its endpoint. */
  readonly number: number;
  readonly kind: EndpointKind;
  readonly requestId: string;
  readonly attempts: number;
  readonly outcome: 'subscribed' | 'not subscribed' | 'in doubt';
}

export const apiKeyOf = (client: number): string => `key-of-client-${client}`;

/** What must not be found in the database or in logs. */
export const tokenPrefix = 'token-of-the-psu-';

/** As a TPP does: until a final answer, with the same X-Request-ID, at one gateway after the other. Milliseconds. */
const repeatAfterMs = 500;
const repeatForMs = 120_000;

/**
 * Initiates a payment.
 *
 * @param number also determines at which gateway
 * @param urls   origins of the gateways
 */
export async function initiate(
  number: number,
  { client, kind }: { readonly client: number; readonly kind: EndpointKind },
  urls: readonly string[],
): Promise<Initiated> {
  const requestId = randomUUID();
  const content = number % 7 === 0 ? 'status=LAST' : 'status=PROCESS';
  const one = {
    ...initiation,
    requestId,
    headers: [
      ...initiation.headers,
      ['X-API-Key', apiKeyOf(client)],
      ['Authorization', `Bearer ${tokenPrefix}${number}`],
      ['TPP-Notification-URI', `${urlOf(kind, client)}/${number}`],
      ['TPP-Notification-Content-Preferred', content],
    ] as const,
  };
  const startedAtMs = performance.now();
  for (let attempts = 1; ; attempts++) {
    const reply = await callOnce(urls[(number + attempts) % urls.length] ?? '', one).catch(() => undefined);
    const outcome = reply && outcomeOf(reply);
    if (outcome) return { number, kind, requestId, attempts, outcome };
    if (performance.now() - startedAtMs > repeatForMs)
      throw new Error(`initiation ${number} gets no answer: ${reply?.status} ${reply?.text}`);
    await setTimeout(repeatAfterMs);
  }
}

/** @returns `undefined` if the TPP has to repeat the request */
function outcomeOf(reply: Reply): Initiated['outcome'] | undefined {
  if (reply.status === 201)
    return reply.header('ASPSP-Notification-Support') === 'true' ? 'subscribed' : 'not subscribed';
  if (reply.header('Penstock-Error') === 'DUPLICATE_IN_DOUBT') return 'in doubt';
  if (reply.status >= 500 || reply.status === 409) return undefined;
  throw new Error(`an initiation was refused: ${reply.status} ${reply.text}`);
}
