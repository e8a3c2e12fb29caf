/**
 * Schemas of the admin API's JSON responses, for the OpenAPI description.
 *
 * The compiler checks that the handlers return these shapes; nothing checks them at run time.
 */

import { z } from 'zod';
import { lanes } from '../pis/operations.ts';

const listOf = <Item extends z.ZodType>(item: Item) => z.array(item).readonly();

const dateTime = z.string().meta({ format: 'date-time' });

export const liveness = z.object({ status: z.literal('live') });

export const readiness = z.object({
  status: z.enum(['ready', 'not ready']),
  reasons: listOf(z.string()).describe(
    'Why it is not ready, and warnings such as a certificate that expires.',
  ),
});

export const circuit = z.object({
  environment: z.string(),
  lane: z.enum(lanes),
  state: z.enum(['closed', 'open', 'half-open', 'probation']).describe('As measured, regardless of a hold.'),
  hold: z.enum(['open', 'closed']).nullable(),
  until: dateTime.nullable().describe('End of the hold, or time of the next probe.'),
  reason: z.string().nullable().describe('Reason of the hold, or why the circuit opened.'),
});
export const circuits = listOf(circuit);

const certificate = z.object({
  subject: z.string(),
  organisationIdentifier: z.string().nullable(),
  roles: listOf(z.string()),
  authority: z.object({ id: z.string(), name: z.string() }).nullable(),
  qcType: z.string().nullable(),
  serialNumber: z.string(),
  sha256: z.string(),
  notBefore: dateTime,
  notAfter: dateTime,
  daysLeft: z.int().describe('Whole days until it expires; negative afterwards.'),
});

const environment = z.object({
  name: z.string(),
  baseUrl: z.string(),
  standardVersion: z.string(),
  circuits,
  certificate: certificate.nullable().describe('The client certificate for TLS to the bank.'),
  signingCertificate: certificate.nullable().describe('The certificate that requests are signed with.'),
});

/** An environment of the bank in the admin API. */
export type EnvironmentView = z.input<typeof environment>;

export const environments = z.object({
  active: z.string().nullable().describe('As last known; null before the shared state was first read.'),
  version: z.int().nullable(),
  environments: listOf(environment),
});

export const preflightReport = z.object({
  ok: z.boolean(),
  steps: listOf(
    z.object({
      step: z.enum(['dns', 'tcp', 'tls', 'certificate', 'answer']),
      ok: z.boolean(),
      detail: z.string(),
    }),
  ),
});

export const switchResult = z.object({
  active: z.string(),
  from: z.string(),
  version: z.int(),
  preflight: preflightReport,
});

export const decisions = listOf(
  z.object({
    at: dateTime,
    xRequestId: z.string(),
    operation: z.string().nullable(),
    client: z.string().nullable(),
    tenant: z.string().nullable(),
    environment: z.string().nullable(),
    status: z.int(),
    error: z.string().optional().describe('The code of an error that the gateway generated.'),
    why: z.string().optional(),
    servedFrom: z.string().optional(),
    durationMs: z.number().nullable(),
    steps: listOf(z.record(z.string(), z.union([z.string(), z.number()]))).describe(
      'In order, each with `afterMs`, `what`, and its details.',
    ),
  }),
);

export const inDoubt = listOf(
  z.object({
    id: z.string(),
    xRequestId: z.string(),
    operation: z.string(),
    environment: z.string(),
    tenant: z.string(),
    since: dateTime,
    why: z.string(),
  }),
);

export const resolution = z.object({ id: z.string(), outcome: z.enum(['happened', 'did-not-happen']) });

export const auditRecords = listOf(
  z.object({
    number: z.int(),
    at: dateTime,
    who: z.string(),
    action: z.string(),
    outcome: z.string(),
    details: z.record(z.string(), z.unknown()),
    previous: z.string().describe('The hash of the record before it.'),
    hash: z.string(),
  }),
);

export const auditVerification = z.object({
  records: z.int(),
  broken: z.string().optional().describe('Where and how the chain is broken.'),
});

export const configuration = z.unknown();
