/** contract: checks of requests and answers against the standard, in each environment; and how long the report is kept. */

import { z } from 'zod';
import { isTimeZone } from '../../contract/dates.ts';
import type { OperationName } from '../../pis/operations.ts';
import { duration, percent } from '../units.ts';
import { file } from '../values.ts';

const headerNames = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/;

const requiredHeaders = (operation: OperationName) =>
  z
    .array(z.string().regex(headerNames, 'expected the name of a header'))
    .default([])
    .describe(`Headers without which ${operation} is refused with HEADER_MALFORMED.`);

const requireHeaders = z
  .strictObject({
    initiatePayment: requiredHeaders('initiatePayment'),
    getPayment: requiredHeaders('getPayment'),
    getPeriodicPayment: requiredHeaders('getPeriodicPayment'),
    getPaymentStatus: requiredHeaders('getPaymentStatus'),
    cancelPayment: requiredHeaders('cancelPayment'),
    startAuthorisation: requiredHeaders('startAuthorisation'),
    listAuthorisations: requiredHeaders('listAuthorisations'),
    getAuthorisation: requiredHeaders('getAuthorisation'),
    updatePsuData: requiredHeaders('updatePsuData'),
    updatePayment: requiredHeaders('updatePayment'),
    getBulkPayment: requiredHeaders('getBulkPayment'),
  } satisfies Record<OperationName, z.ZodType>)
  .prefault({})
  .describe(
    'Headers that this bank requires beyond the standard, such as `{ initiatePayment: [TPP-Redirect-URI] }`.',
  );

export const environmentContract = z
  .strictObject({
    requests: z
      .enum(['off', 'report', 'enforce'])
      .default('report')
      .describe(
        'Checks of requests against the standard: `report` lists deviations (`penstock contract report`), `enforce` also refuses requests that the bank would refuse or execute differently, with CONTRACT_VIOLATED, before anything is sent.',
      ),
    responses: z
      .enum(['off', 'report'])
      .default('report')
      .describe('Checks of the answers of the bank. They are never refused or changed.'),
    sample: percent('10%', { min: '1%' }).describe(
      'The part of the answers that is checked: of each operation, at least one and, below 100%, at most 50 in a second. All requests are checked.',
    ),
    timeZone: z
      .string()
      .refine(isTimeZone, 'expected a time zone such as Europe/Berlin')
      .optional()
      .meta({ defaultText: 'none' })
      .describe(
        'The time zone of the bank, such as Europe/Berlin. With it, `enforce` refuses an execution date in the past; without it, the date is only reported.',
      ),
    requireHeaders,
    profile: file()
      .optional()
      .meta({ defaultText: 'none' })
      .describe(
        "The YAML file of a bank's own additions to the standard and restrictions: docs/operations/contract-profile.md describes it, and examples/contract-profiles has two.",
      ),
  })
  .prefault({})
  .describe('The contract guard: checks against the standard of the version standardVersion.');

export const contract = z
  .strictObject({
    keepFor: duration('30d', { min: '1d', max: '400d' }).describe(
      'How long the report of deviations from the standard is kept, in days of UTC.',
    ),
  })
  .prefault({})
  .describe(
    'The report of the contract guard, of all environments. What is checked is set in each environment.',
  );
