/** The application of the public API, with a handler instead of the pipeline. */

import type { RequestListener } from 'node:http';
import type { CheckQuota } from '../../src/http/quota.ts';
import { createRequestReader } from '../../src/http/read-request.ts';
import type { ServeLookUp } from '../../src/http/serve-look-up.ts';
import { createTppApp } from '../../src/http/tpp-app.ts';
import { createMatcher } from '../../src/pis/operations.ts';
import type { ErrorCode } from '../../src/request/errors.ts';
import type { PisRequest, PisResponse } from '../../src/request/messages.ts';
import type { Handler } from '../../src/request/stage.ts';

export const requestId = '99391C7E-AD88-49EC-A2AD-99DDCB1F7721';

export interface AppUnderTest {
  readonly app: RequestListener;
  /** Requests that reached the handler. */
  readonly received: readonly PisRequest[];
  /** Requests that were refused before, with the X-Request-ID of the response. */
  readonly refused: readonly { readonly code: ErrorCode; readonly requestId: string }[];
}

export function startApp(
  handler: Handler<PisRequest>,
  checkQuota: CheckQuota = () => ({ result: Promise.resolve(), isLikely: false }),
  serveLookUp?: ServeLookUp,
): AppUnderTest {
  const received: PisRequest[] = [];
  const refused: { code: ErrorCode; requestId: string }[] = [];
  const app = createTppApp({
    readRequest: createRequestReader({
      match: createMatcher({
        segment: 'berlingroup',
        paymentServices: ['payments'],
        paymentProducts: 'any',
        authorisationTypes: ['authorisations'],
      }),
      admit: () => {},
      authenticate: () => ({
        name: 'anonymous',
        tenant: 'anonymous',
        environments: ['sandbox', 'production'],
      }),
      checkQuota,
      environments: ['sandbox', 'production'],
      maxBodyBytes: 1_000,
      deadlineMs: { write: 3_000, read: 2_000, status: 1_000 },
    }),
    serveLookUp,
    networkOf: () => undefined,
    pipeline: (request) => {
      received.push({ ...request }); // the response ends the body of the context
      return handler(request);
    },
    onRefused: ({ code }, id) => void refused.push({ code, requestId: id }),
  });
  return { app, received, refused };
}

export function bankResponse(over: Partial<PisResponse> = {}): PisResponse {
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
