/** The TPP systems' application with a line of a test's own behind it. */

import type { RequestListener } from 'node:http';
import type { ErrorCode } from '../../src/flow/errors.ts';
import type { PisRequest, PisResponse } from '../../src/flow/messages.ts';
import type { Handler } from '../../src/flow/stage.ts';
import { createPisApp } from '../../src/http/pis-app.ts';
import { createRequestReader } from '../../src/http/read-request.ts';
import { createMatcher } from '../../src/pis/operations.ts';

export const requestId = '99391C7E-AD88-49EC-A2AD-99DDCB1F7721';

export interface DoorUnderTest {
  readonly app: RequestListener;
  /** What came through to the line. */
  readonly taken: readonly PisRequest[];
  /** What the door refused by itself, and with which id. */
  readonly refused: readonly { readonly code: ErrorCode; readonly requestId: string }[];
}

/** An application whose line answers like this. */
export function doorBefore(line: Handler<PisRequest>): DoorUnderTest {
  const taken: PisRequest[] = [];
  const refused: { code: ErrorCode; requestId: string }[] = [];
  const app = createPisApp({
    read: createRequestReader({
      match: createMatcher({
        segment: 'berlingroup',
        paymentServices: ['payments'],
        paymentProducts: 'any',
        authorisationTypes: ['authorisations'],
      }),
      admit: () => {},
      identify: () => ({ name: 'anonymous', tenant: 'anonymous', environments: ['sandbox', 'production'] }),
      checkQuota: async () => {},
      environments: ['sandbox', 'production'],
      maxBodyBytes: 1_000,
      deadlineMs: { write: 3_000, read: 2_000, status: 1_000 },
    }),
    networkOf: () => undefined,
    line: (request) => {
      taken.push(request);
      return line(request);
    },
    refused: ({ code }, id) => void refused.push({ code, requestId: id }),
  });
  return { app, taken, refused };
}

/** An answer of the bank as the line gives it back. */
export function bankAnswer(over: Partial<PisResponse> = {}): PisResponse {
  return {
    status: 200,
    headers: [['Content-Type', 'application/json']],
    body: Buffer.from('{"transactionStatus":"ACCP"}'),
    servedFrom: 'bank',
    environment: 'sandbox',
    upstreamMs: 1,
    ...over,
  };
}
