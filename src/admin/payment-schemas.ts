/** Schemas of the admin API for payments. */

import { z } from 'zod';
import { historyKinds, paymentOutcomes } from '../payments/payment-views.ts';
import { storableText as text, time } from './request-schemas.ts';
import { dateTime, listOf } from './response-schemas.ts';

const positionShape = z.object({ createdAt: z.int(), paymentId: text, environment: text });

/** A place in the list, as one word. */
export const cursorOf = ({ createdAt, paymentId, environment }: z.output<typeof positionShape>): string =>
  Buffer.from(JSON.stringify({ createdAt, paymentId, environment })).toString('base64url');

/** @returns `undefined` for a text that no page has returned */
export function positionIn(cursor: string): z.output<typeof positionShape> | undefined {
  try {
    return positionShape.safeParse(JSON.parse(Buffer.from(cursor, 'base64url').toString())).data;
  } catch {
    return undefined;
  }
}

/** Which payments: all conditions must hold. */
export const paymentsQuery = z.strictObject({
  environment: text.optional(),
  tenant: text.optional(),
  product: text
    .optional()
    .describe('Service and product, such as payments/sepa-credit-transfers, or the product alone.'),
  status: z
    .string()
    .regex(/^[A-Z]{4}$/, 'expected a transaction status such as ACSC')
    .optional()
    .describe('The last transaction status that was seen.'),
  outcome: z.enum(paymentOutcomes, { error: `expected ${paymentOutcomes.join(', ')}` }).optional(),
  from: time.optional().describe('The earliest time of the initiation.'),
  to: time.optional().describe('The latest time of the initiation.'),
  cursor: z
    .string()
    .refine((cursor) => positionIn(cursor) !== undefined, 'expected the cursor of a page')
    .optional()
    .describe('Of the page before, to continue the list.'),
});

const payment = z.object({
  environment: z.string(),
  paymentId: z.string(),
  tenant: z.string(),
  product: z
    .string()
    .nullable()
    .describe('Service and product; null if the gateway has not initiated it, or several have this id.'),
  createdAt: dateTime.describe('When the response of the bank to the initiation was stored.'),
  status: z.string().nullable().describe('The last transaction status that a response of the bank showed.'),
  statusSince: dateTime.nullable().describe('When the gateway saw it first.'),
  outcome: z
    .enum(paymentOutcomes)
    .describe(
      '`webhook`: a message to the TPP, at the time of its last attempt. `in-doubt`: a write for the payment is in doubt. Otherwise from the status; `unknown`: none was seen.',
    ),
});

export const payments = z.object({
  payments: listOf(payment).describe('Newest first.'),
  cursor: z
    .string()
    .nullable()
    .describe(
      'Continues the list; null at its end. A page may be short, and even empty, although more follow.',
    ),
  initiationsInDoubt: z
    .int()
    .describe('Initiations in doubt, of all environments: their payments have no id. See /api/in-doubt.'),
});

export const paymentHistory = z.object({
  payment,
  history: listOf(
    z.object({
      at: dateTime,
      what: z
        .enum(historyKinds)
        .describe(
          '`status`: the transaction status has changed. `read`: a read that failed. `running`: a write without a response yet. ' +
            '`in-doubt`: a write of which it is unknown whether the bank has executed it. `resolution`: of such a write. `operator`: another action of an operator.',
        ),
      operation: z.string().nullable(),
      xRequestId: z.string().nullable(),
      status: z.string().nullable().describe('The transaction status, or the status of the response.'),
      outcome: z.string().nullable(),
      error: z.string().nullable().describe('The code of an error that the gateway generated.'),
      bankError: z.string().nullable().describe('The code in tppMessages of the response of the bank.'),
      text: z.string().nullable(),
      who: z.string().nullable().describe('The client, or the operator.'),
    }),
  ).describe('Oldest first.'),
  complete: z
    .boolean()
    .describe(
      'Whether all requests are in the history: not if the payment is older than requests.keepFor, or has more than 200 requests or changes of its status.',
    ),
});
