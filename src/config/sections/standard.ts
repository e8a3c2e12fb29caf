/** standard: the paths of the Berlin Group's payment initiation service that the gateway offers. */

import { z } from 'zod';
import { optionalOperations } from '../../pis/operations.ts';
import { unlessNumber } from '../values.ts';

const segment = /^[A-Za-z0-9._~-]{1,256}$/;
const isSegment = (text: string) => segment.test(text) && text !== '.' && text !== '..';

/** Zero or more path segments. */
export const pathSegments = () =>
  z
    .string({ error: unlessNumber(segmentsExpected) })
    .refine((text) => text === '' || text.split('/').every(isSegment), segmentsExpected);

export const segmentsExpected =
  'expected path segments of letters, digits, ".", "_", "~" and "-", without a slash at either end, or "" for none';

const choices = (examples: string) =>
  z.union(
    [z.literal('any'), z.array(z.string().refine(isSegment)).min(1)],
    `expected any, or a list of path segments such as [${examples}]`,
  );

export const standard = z
  .strictObject({
    segment: pathSegments()
      .default('berlingroup')
      .describe(
        'The path before /v1 at the gateway, and between baseUrl and pathVersion at environments without a segment of their own: zero or more path segments.',
      ),
    paymentServices: choices('payments, bulk-payments')
      .default(['payments', 'bulk-payments', 'periodic-payments'])
      .describe('The payment services that are forwarded.'),
    paymentProducts: choices('sepa-credit-transfers, instant-sepa-credit-transfers')
      .default('any')
      .describe('The payment products that are forwarded.'),
    authorisationTypes: choices('authorisations, cancellation-authorisations')
      .default(['authorisations', 'cancellation-authorisations'])
      .describe('The kinds of authorisation that are forwarded.'),
    alsoOffer: z
      .array(z.enum(optionalOperations), `expected a list of: ${optionalOperations.join(', ')}`)
      .default([])
      .describe(
        'Operations beyond the eight: `updatePsuData` (PUT on an authorisation, for embedded SCA and its decoupled and method steps), `updatePayment` (PUT on a payment) and `getBulkPayment` (GET on one bulk payment).',
      ),
  })
  .prefault({})
  .describe("The paths of the Berlin Group's payment initiation service that the gateway offers.");
