/** Schemas of the requests to the admin API. */

import { z } from 'zod';
import { environment } from '../config/sections/environments.ts';
import { duration } from '../config/units.ts';
import { environmentName, plainName } from '../config/values.ts';
import { subscriptionStates } from '../notifications/manage-subscriptions.ts';
import { isId, operations } from '../pis/operations.ts';
import { answerSources, storedOutcomes } from '../telemetry/request-search.ts';

/** Control characters (such as those of terminals), line ends, and characters that change the text direction (UAX 9). */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]+/gu;

const missingReason = 'expected a reason, for the audit log';

/** Without the characters that would break, hide or reverse the text around it. */
export const oneLine = (text: string): string => text.replace(unprintable, ' ').trim();

/** One line of text. */
const reason = z.string({ error: missingReason }).overwrite(oneLine).min(1, missingReason).max(500);

/** The error text for a body that is not a JSON object. */
const jsonError = {
  error: (issue: { readonly code?: string }) =>
    issue.code === 'invalid_type' ? 'expected JSON, with Content-Type: application/json' : undefined,
};

export const switchRequest = z.strictObject(
  {
    environment: z.string({ error: 'expected the name of an environment' }),
    reason,
    confirm: z.string().optional(),
    force: z.boolean().default(false),
    acknowledgeDifferences: z
      .boolean()
      .default(false)
      .describe('Switches although requests would be refused there, or executed in another way.'),
  },
  jsonError,
);

/** Holds a circuit open or closed; `hold: null` releases it. */
export const holdRequest = z.strictObject(
  {
    hold: z.enum(['open', 'closed'], { error: 'expected open, closed or null' }).nullable(),
    reason,
    for: duration('10min', { max: '24h' }),
  },
  jsonError,
);

/** The outcome of a payment in doubt, as the bank reported it to the operator. */
export const resolutionRequest = z
  .strictObject(
    {
      outcome: z.enum(['happened', 'did-not-happen']),
      paymentId: z
        .string()
        .refine(
          (id) => isId(id) && id.trim() === id,
          'expected the paymentId as the bank returned it, without spaces around it',
        )
        .optional(),
      reason,
      confirm: z
        .string()
        .optional()
        .describe('The name of the environment again; required for did-not-happen in production.'),
    },
    jsonError,
  )
  .refine(({ outcome, paymentId }) => outcome === 'happened' || paymentId === undefined, {
    path: ['paymentId'],
    error: 'expected none: a request that did not happen has created no payment',
  });

/** The operations whose outcome at the bank can be in doubt. */
const writeOperations = operations.filter(({ lane }) => lane === 'write').map(({ name }) => name);

export const time = z.iso.datetime({ offset: true, error: 'expected a time such as 2026-11-21T01:00:00Z' });

/** Which requests in doubt: all conditions must hold. */
const inDoubtFilter = {
  environment: z.string().min(1).optional(),
  tenant: z.string().min(1).optional(),
  operation: z.enum(writeOperations, { error: `expected ${writeOperations.join(', ')}` }).optional(),
  requestId: z.string().min(1).optional().describe('The X-Request-ID, in any letter case.'),
  olderThan: duration('10min').unwrap().optional().describe('The minimum age of the requests.'),
  from: time.optional().describe('The earliest time of the requests.'),
  to: time.optional().describe('The latest time of the requests.'),
  why: z.string().min(1).optional().describe('A part of the reason, in any letter case.'),
};

export const inDoubtQuery = z.strictObject(inDoubtFilter);

export const exportQuery = z.strictObject({
  ...inDoubtFilter,
  format: z.enum(['csv', 'json'], { error: 'expected csv or json' }).default('csv'),
});

/** The requests are in one environment, because its name confirms the resolution. */
const severalFilter = {
  ...inDoubtFilter,
  environment: z.string({ error: 'expected the name of an environment' }).min(1),
};

export const previewQuery = z.strictObject(severalFilter);

/** Resolves all requests in doubt that match, if they are those of the preview. */
export const severalResolutionRequest = z.strictObject(
  {
    ...severalFilter,
    selection: z.string({ error: 'expected the selection of a preview' }),
    outcome: z.enum(['happened', 'did-not-happen']),
    reason,
    confirm: z.string().optional().describe('The name of the environment again; required for production.'),
  },
  jsonError,
);

export const timelineQuery = z.strictObject({
  from: time.optional().describe('By default 24 hours before `to`.'),
  to: time.optional().describe('By default now.'),
});

/** PostgreSQL refuses a NUL. */
export const storableText = z.string().regex(/^[^\0]+$/, 'expected a text');

/** Which requests to search for: all conditions must hold. */
export const searchQuery = z.strictObject({
  requestId: storableText.optional().describe('The X-Request-ID.'),
  payment: storableText.optional().describe("The bank's id of the payment."),
  tenant: storableText.optional().describe('The tenant, by its configured name.'),
  client: storableText.optional(),
  operation: z
    .enum(
      operations.map(({ name }) => name),
      { error: `expected ${operations.map(({ name }) => name).join(', ')}` },
    )
    .optional(),
  environment: storableText.optional(),
  product: storableText.optional().describe('Service and product, such as payments/sepa-credit-transfers.'),
  status: z
    .string()
    .regex(/^[1-5]\d\d$/, 'expected a status such as 401')
    .optional()
    .describe('The status of the response.'),
  outcome: z.enum(storedOutcomes, { error: `expected ${storedOutcomes.join(', ')}` }).optional(),
  bankError: storableText
    .optional()
    .describe('The code of an error of the bank, such as CERTIFICATE_REVOKED.'),
  error: storableText
    .optional()
    .describe(
      'A code of the error table or of the bank, the status of an error response of the bank, or `any`.',
    ),
  servedFrom: z
    .enum(answerSources, { error: `expected ${answerSources.join(', ')}` })
    .optional()
    .describe('Where the answer came from.'),
  minDuration: duration('1ms', { max: '24h' })
    .unwrap()
    .optional()
    .describe('The minimum duration of the requests, such as 2s.'),
  from: time.optional().describe('The earliest time of the requests; by default, all stored ones.'),
  to: time.optional().describe('The time before which the requests were received; by default, now.'),
  limit: z
    .string()
    .regex(/^([1-9]\d?|[1-4]\d\d|500)$/, 'expected a number from 1 to 500')
    .default('50')
    .describe('How many requests are returned at most.'),
});

export const historyQuery = z.strictObject({
  from: time.optional().describe('The beginning; by default, an hour before the end.'),
  to: time.optional().describe('The end; by default, now.'),
});

/** Which subscriptions: all conditions must hold. */
export const notificationsQuery = z.strictObject({
  tenant: z.string().min(1).optional(),
  payment: z.string().min(1).optional().describe('The paymentId.'),
  state: z.enum(subscriptionStates, { error: `expected ${subscriptionStates.join(', ')}` }).optional(),
});

export const notificationRequest = z.strictObject(
  { action: z.enum(['resend', 'end'], { error: 'expected resend or end' }), reason },
  jsonError,
);

/** Sends the dead letters again, of one tenant or of all. */
export const resendRequest = z.strictObject(
  {
    action: z.literal('resend', { error: 'expected resend' }),
    tenant: z.string().min(1).optional().describe('Only those of this tenant; otherwise all.'),
    reason,
  },
  jsonError,
);

const days = z
  .string()
  .regex(/^([1-9]\d?|[1-3]\d\d|400)$/, 'expected a number from 1 to 400')
  .describe('How many days, at most contract.keepFor; today is one of them.');

/** Which deviations from the standard: all conditions must hold. */
export const contractQuery = z.strictObject({
  environment: z.string().min(1).optional(),
  direction: z.enum(['request', 'response'], { error: 'expected request or response' }).optional(),
  level: z.enum(['harmful', 'notable', 'usual'], { error: 'expected harmful, notable or usual' }).optional(),
  days: days.default('30'),
});

export const compareQuery = z.strictObject({
  from: z
    .string({ error: 'expected the name of an environment' })
    .min(1)
    .describe('The environment with the requests.'),
  to: z
    .string({ error: 'expected the name of an environment' })
    .min(1)
    .describe('The environment that might get them.'),
  days: days.default('7'),
});

const identityRequest = <To extends z.ZodType>(to: To) => z.strictObject({ to, reason }, jsonError);

/** Which tenants and environments are the same, by the action in the audit log. */
export const identityRequests = {
  'rename tenant': identityRequest(plainName().describe('The new name.')),
  'move credential': identityRequest(
    plainName().describe('The tenant that the client works for from now on.'),
  ),
  'rename environment': identityRequest(
    environmentName()
      .refine((name) => name !== 'active', 'environments.active is a setting: choose another name')
      .describe('The new name.'),
  ),
  'move environment': identityRequest(environment.shape.baseUrl.describe('The new baseUrl.')),
} as const;

/** Makes this instance load its configuration again. */
export const reloadRequest = z.strictObject(
  {
    reason: reason.optional(),
    all: z.literal(true).optional().describe('All instances, and not only the one that responds.'),
  },
  jsonError,
);

/** Signs in with a token; the response sets the cookie of a session. */
export const signInRequest = z.strictObject(
  { token: z.string({ error: 'expected the token of an operator' }).min(1) },
  jsonError,
);

export const oidcSignInQuery = z.strictObject({
  page: z
    .string()
    .optional()
    .describe(
      'Where to return to: the path and the query of a page of payments. Otherwise, to the first page.',
    ),
  redirected: z.literal('1').optional().describe('Set by the gateway when it redirects to admin.publicUrl.'),
});

/** A purge of all cached statuses only causes extra reads at the bank, so it needs no confirmation. */
export const purgeQuery = z.strictObject({
  environment: z.string().min(1).optional().describe('Only this environment; otherwise all.'),
  payment: z.string().min(1).optional().describe('Only this payment; otherwise all.'),
  reason: reason.optional().describe('For the audit log.'),
});

/** All errors of a request in one text. */
export const describeErrors = (error: z.ZodError): string =>
  error.issues
    .map(({ path, message }) => `${path.length > 0 ? path.join('.') : 'body'}: ${message}`)
    .join('; ');
