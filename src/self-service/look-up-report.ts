/** What a TPP gets when it looks up an X-Request-ID: as a schema for the OpenAPI description, and as a type. */

import { z } from 'zod';

const initiation = z
  .object({
    state: z
      .enum(['in-progress', 'not-sent', 'answered', 'in-doubt', 'executed'])
      .describe(
        '`answered`: the bank has answered, and a repeat gets its response. `in-doubt`: it is unknown whether the bank has made the ' +
          'payment. `executed`: the bank has made the payment, and its response was lost. `not-sent`: nothing was sent to the bank so far.',
      ),
    environment: z.string().nullable(),
    status: z.int().nullable().describe('The status of the bank’s response.'),
    paymentId: z.string().nullable().describe('If it is known.'),
    advice: z.string().describe('What to do next.'),
    rules: z.url().describe('The complete rules for repeats.'),
  })
  .describe('The outcome of all initiations with this X-Request-ID together, at present.');

const request = z.object({
  at: z.string().meta({ format: 'date-time' }).describe('When the gateway received it.'),
  operation: z.string().nullable().describe('Null if it was refused before that was known; likewise below.'),
  environment: z.string().nullable(),
  paymentId: z.string().nullable().describe('The payment that an initiation has created, if it is known.'),
  status: z.int().nullable().describe('The status of the response; null while the request is running.'),
  bankError: z.string().nullable().describe('The code of an error that the bank has answered with.'),
  error: z.string().nullable().describe('The code of an error that the gateway generated: docs/errors.md.'),
  explanation: z
    .string()
    .nullable()
    .describe(
      'Why it failed, or why its outcome or its status is unknown, and what to do; null for a success.',
    ),
  help: z
    .url()
    .nullable()
    .describe(
      'The description of the error code, if the operators have published one (listen.errorPageUrl).',
    ),
  seenByBank: z.enum(['yes', 'maybe', 'no']).describe('Whether the bank can have received this request.'),
  servedFrom: z
    .enum(['bank', 'cache', 'stale-cache', 'shared', 'ledger', 'gateway'])
    .nullable()
    .describe(
      'Where the response came from. `shared`: the response to a status read of the same payment at the same time. `ledger`: the ' +
        'stored response to the first request with this X-Request-ID. `gateway`: an error of the gateway. Null while the request is running.',
    ),
  durationMs: z.number().nullable(),
});

export const lookUpReport = z.object({
  xRequestId: z.string(),
  initiation: initiation.nullable().describe('Null if no payment was initiated with this X-Request-ID.'),
  requests: z.array(request).readonly().describe('Every attempt with this X-Request-ID, newest first.'),
  complete: z.boolean().describe('Whether all requests are listed.'),
  missing: z.array(z.string()).readonly().describe('Why requests may be missing; empty if it is complete.'),
});

export type LookUpReport = z.output<typeof lookUpReport>;
export type ReportedInitiation = z.output<typeof initiation>;
export type ReportedRequest = z.output<typeof request>;
