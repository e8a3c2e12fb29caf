/**
 * Schemas of the admin API's JSON responses, for the OpenAPI description.
 *
 * The compiler checks that the handlers return these shapes; nothing checks them at run time.
 */

import { z } from 'zod';
import { severities } from '../alerts/alert-table.ts';
import { lanes } from '../pis/operations.ts';
import { requestOutcomes } from '../telemetry/request-search.ts';
import { timelineKinds } from '../telemetry/timeline.ts';
import { contractComparison } from './contract-schemas.ts';

export const listOf = <Item extends z.ZodType>(item: Item) => z.array(item).readonly();

export const dateTime = z.string().meta({ format: 'date-time' });

export const liveness = z.object({ status: z.literal('live') });

export const readiness = z.object({
  status: z.enum(['ready', 'not ready']),
  reasons: listOf(z.string()).describe(
    'Why the instance is not ready, and warnings such as an expiring certificate.',
  ),
});

export const alerts = listOf(
  z.object({
    id: z.string().describe('Of the kind of alert: docs/operations/alerts.md lists them.'),
    severity: z
      .enum(severities)
      .describe(
        'critical: customers cannot pay, or money is uncertain. warning: somebody must act. info: good to know.',
      ),
    environment: z.string().optional(),
    since: dateTime,
    text: z.string().describe('What is so, and what it means.'),
    action: z.string().describe('What to do.'),
    guide: z.string().describe('The address of the page that says more.'),
    overSince: dateTime
      .optional()
      .describe('When its condition has ended, while the alert is kept for 20 seconds.'),
    instances: listOf(z.string()).optional().describe('The instances that find it, if others do not.'),
  }),
);

const signInMethod = z.enum(['token', 'proxy', 'oidc']);

export const session = z.object({
  name: z
    .string()
    .nullable()
    .describe('The name of the operator in the audit log; null without an operator.'),
  role: z.enum(['read', 'operate']).nullable(),
  method: signInMethod.nullable().describe('How the operator has signed in.'),
  expiresAt: dateTime.nullable().describe('End of the session; null for a token or a proxy.'),
  signInWith: listOf(signInMethod).describe('How operators can sign in.'),
});

const circuitState = z.enum(['closed', 'open', 'half-open', 'probation']);

const circuitCause = z
  .object({
    at: dateTime.describe('When the first call failed.'),
    why: z.string().describe('Why it failed.'),
    xRequestId: z.string(),
    operation: z.string(),
    tenant: z.string(),
    openedAt: dateTime,
    count: z.int().describe('How many calls had failed when the circuit opened.'),
    calls: z.int().describe('How many calls had been counted until then.'),
  })
  .nullable()
  .describe('The first failed call of those that opened the circuit; stays until the circuit is closed.');

export const circuit = z.object({
  environment: z.string(),
  lane: z.enum(lanes),
  state: circuitState.describe(
    'The measured state, regardless of a hold. Closed if it is closed for any tenant.',
  ),
  hold: z.enum(['open', 'closed']).nullable(),
  until: dateTime.nullable().describe('End of the hold, or time of the next probe.'),
  reason: z.string().nullable().describe('Reason of the hold, or why the circuit opened.'),
  cause: circuitCause,
  tenants: listOf(
    z.object({
      tenant: z.string(),
      state: circuitState,
      until: dateTime.nullable().describe('Time of the next probe.'),
      reason: z.string().nullable().describe('Why the circuit opened.'),
      cause: circuitCause,
    }),
  ).describe('The tenants whose circuit is not closed, as measured.'),
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
  production: z
    .boolean()
    .describe('Real money moves there: some changes must be confirmed by the name of the environment.'),
  circuits,
  certificate: certificate.nullable().describe('The client certificate for TLS to the bank.'),
  signingCertificate: certificate.nullable().describe('The certificate that requests are signed with.'),
});

/** An environment of the bank in the admin API. */
export type EnvironmentView = z.input<typeof environment>;

export const environments = z.object({
  active: z.string().nullable().describe('The last known value; null before it has been read.'),
  version: z.int().nullable(),
  environments: listOf(environment),
});

const preflightReport = z.object({
  ok: z.boolean(),
  steps: listOf(
    z.object({
      step: z.enum(['dns', 'tcp', 'tls', 'certificate', 'answer']),
      ok: z.boolean(),
      detail: z.string(),
      remark: z
        .string()
        .optional()
        .describe('What to know about a step that passed, or what to do about one that failed.'),
    }),
  ),
});

export const switchResult = z.object({
  active: z.string(),
  from: z.string(),
  version: z.int(),
  preflight: preflightReport,
  contract: contractComparison
    .nullable()
    .describe(
      'What was compared; null for a switch back, if nothing is checked, and if the report could not be read: the audit record then has notCompared.',
    ),
});

export const preflightResult = preflightReport.extend({
  contract: contractComparison
    .nullable()
    .describe('What the environment would do with the requests of the active one; null for a switch back.'),
});

const requestReports = listOf(
  z.object({
    at: dateTime,
    xRequestId: z.string(),
    operation: z.string().nullable(),
    client: z.string().nullable(),
    tenant: z.string().nullable(),
    environment: z.string().nullable(),
    product: z.string().nullable().describe('Service and product.'),
    paymentId: z
      .string()
      .nullable()
      .describe('The payment in the path, or the one that an initiation has created.'),
    status: z.int().nullable().describe('Null while the request is running.'),
    outcome: z
      .enum(requestOutcomes)
      .describe(
        '`refused-by-bank`: the bank answered 4xx, or rejected the payment. `failed`: it did not answer, or with 5xx. `refused`: by the gateway. `in-doubt`: it is unknown what the bank has done.',
      ),
    bankError: z
      .string()
      .optional()
      .describe(
        'The code of an error of the bank, such as CERTIFICATE_REVOKED; `other` if it is not a code as the standard has them.',
      ),
    error: z.string().optional().describe('The code of an error that the gateway generated.'),
    why: z.string().optional(),
    servedFrom: z.string().optional(),
    durationMs: z.number().nullable(),
    steps: listOf(z.record(z.string(), z.union([z.string(), z.number()]))).describe(
      'In order, each with `afterMs`, `what`, and its details.',
    ),
    instance: z.string().describe('The instance that served the request.'),
  }),
);
export const decisions = requestReports;

export const searchResult = z.object({
  requests: requestReports.describe('Newest first.'),
  searchedFrom: dateTime.describe(
    'All matching requests since this time are listed. If the search is not complete, continue it with this time as `to`.',
  ),
  complete: z.boolean().describe('Whether all of the time was searched.'),
  notStored: z
    .int()
    .describe('Requests of the searched time and of the tenant of which no record was stored.'),
});

export const errorCounts = listOf(
  z.object({
    code: z
      .string()
      .nullable()
      .describe('The code of an error that the gateway generated; null for an error response of the bank.'),
    client: z.string().nullable(),
    tenant: z.string().nullable(),
    operation: z.string().nullable(),
    environment: z.string().nullable(),
    bankStatus: z.int().nullable().describe('The status of an error response of the bank.'),
    bankError: z.string().nullable().describe('The code in that response, such as CERTIFICATE_REVOKED.'),
    count: z.int(),
    lastAt: dateTime,
    xRequestId: z.string().describe('Of the last one.'),
  }),
);

const count = z.int();

export const history = z.object({
  resolutionSeconds: z.int(),
  points: listOf(
    z.object({
      at: dateTime.describe('The beginning of the interval.'),
      requests: count,
      refused: count.describe('Errors of the gateway without a call to the bank, except 404.'),
      failed: count.describe('Responses of 5xx by the bank, and calls without a usable response.'),
      p50Ms: z.number().nullable().describe('Within 5 %; null without requests.'),
      p99Ms: z.number().nullable(),
      cache: z
        .object({ hit: count, stale: count, shared: count, miss: count, bypass: count })
        .describe('Status reads, by how they were answered.'),
    }),
  ).describe('Oldest first, without gaps.'),
});

export const instances = listOf(
  z.object({
    name: z.string().describe('As `instance` in log lines; new after every start.'),
    id: z.string().describe('Identifies the instance: at present the same as `name`.'),
    version: z.string(),
    since: dateTime.describe('When it started, on the clock of the database.'),
    ready: z.boolean(),
    reasons: listOf(z.string()).describe('Why it is not ready, and warnings.'),
    status: z
      .enum(['up', 'down', 'stopped', 'unknown'])
      .describe(
        '`down`: no report for 2.5 seconds. `stopped`: it has announced its stop. `unknown`: the instance that responds can read no ' +
          'reports, because the database is unavailable. Listed for an hour after the last report.',
      ),
    lastSeen: dateTime.describe('Time of the last report, on the clock of the database.'),
    clockDifferenceMs: z
      .int()
      .describe(
        'By how many milliseconds its clock is ahead of that of the database; negative if it is behind.',
      ),
    configurationHash: z
      .string()
      .describe(
        'SHA-256 of its effective configuration, without secrets and the settings in which instances may differ, such as ports. ' +
          'Instances with the same hash have the same configuration.',
      ),
    reload: z
      .object({
        id: z.string().describe('Identifies the request.'),
        outcome: z.enum(['applied', 'refused']),
        errors: listOf(z.string()),
        restartRequired: listOf(z.string()),
      })
      .nullable()
      .describe('Its answer to the last reload of all instances since its start.'),
    figures: z
      .object({
        requestsPerSecond: z.number(),
        refusedPerSecond: z
          .number()
          .describe('Errors of the gateway without a call to the bank, except 404.'),
        failedPerSecond: z
          .number()
          .describe('Responses of 5xx by the bank, and calls without a usable response.'),
        p50Ms: z.number().nullable(),
        p99Ms: z.number().nullable(),
        waiting: z.int().describe('Calls that wait for a permit or a concurrency slot.'),
        inFlight: z.int().describe('Calls to the bank in progress.'),
        waits: z.int().describe('Status reads that wait for a change.'),
        streams: z.int().describe('Open event streams of statuses.'),
        pollsPerSecond: z.number().describe('Status reads that the gateway sends for those who wait.'),
        overduePolls: z.int().describe('Polls that wait for a permit within notifications.share.'),
        cpuPercent: z.number().describe('100 is one core.'),
        memoryBytes: z.int().describe('Resident memory of the process.'),
        eventLoopDelayMs: z.number().describe('The longest delay in the last second.'),
      })
      .describe('Of the last report. Rates and quantiles cover five seconds.'),
    circuits: listOf(
      z.object({
        environment: z.string(),
        lane: z.enum(lanes),
        state: circuitState,
        hold: z.enum(['open', 'closed']).nullable(),
        cause: circuitCause,
        tenants: listOf(z.string()).describe('Tenants whose circuit is not closed; at most 20.'),
      }),
    ).describe('The circuits that are held, or not closed for every tenant.'),
    queues: listOf(
      z.object({
        environment: z.string(),
        waiting: z.object({ write: z.int(), read: z.int(), status: z.int() }),
        inFlight: z.int(),
      }),
    ),
  }),
);

export const timelineEntries = listOf(
  z.object({
    at: dateTime,
    kind: z.enum(timelineKinds),
    instance: z.string().describe('The name of the instance that it happened on.'),
    who: z.string().nullable().describe('The operator or the signal that caused it.'),
    environment: z.string().nullable(),
    lane: z.enum(lanes).nullable(),
    text: z.string(),
    details: z.record(z.string(), z.unknown()),
  }),
);

export const inDoubt = listOf(
  z.object({
    id: z.string(),
    xRequestId: z.string(),
    operation: z.string(),
    paymentId: z
      .string()
      .nullable()
      .describe('Null for an initiation, unless the response of the bank names the payment.'),
    environment: z.string(),
    tenant: z.string(),
    since: dateTime.describe('When the request was received.'),
    lateAnswerUntil: dateTime.describe(
      'Until then, the response of the bank may still arrive, unless it has answered, and did-not-happen is refused.',
    ),
    bankAnswered: z.boolean().describe('Whether the bank has answered, and left the outcome open.'),
    severity: z
      .enum(['critical', 'warning'])
      .describe('`warning`: a step of an authorisation before the last one, which executes no payment.'),
    why: z.string(),
  }),
);

export const inDoubtPreview = z.object({
  selection: z
    .string()
    .describe(
      'Identifies exactly the requests of this preview, and the time from which their age is counted.',
    ),
  requests: inDoubt,
});

export const severalResolved = z.object({
  resolved: z.int(),
  early: z.int().describe('Requests that the bank may still execute: they stay in doubt.'),
  gone: z
    .int()
    .describe('Requests that were already resolved, by another operator or by a late response of the bank.'),
});

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

const configChanges = listOf(
  z.object({
    setting: z.string(),
    from: z.string().nullable().describe('As in the configuration file; null if it did not exist.'),
    to: z.string().nullable().describe('As in the configuration file; null if it does not exist any more.'),
  }),
);

export const identityChanged = z.object({ result: z.string().describe('What has changed.') });

export const reloadReport = z.union([
  z.object({
    changes: configChanges.describe('The settings that the reload has changed, with secrets masked.'),
    restartRequired: configChanges.describe('The settings that take effect after a restart.'),
  }),
  z
    .object({
      instances: listOf(
        z.object({
          name: z.string(),
          outcome: z
            .enum(['applied', 'refused', 'no answer'])
            .describe(
              '`refused`: its previous configuration stays in effect. `no answer`: not within 15 seconds.',
            ),
          errors: listOf(z.string()).describe('Why it refuses the new configuration.'),
          restartRequired: listOf(z.string()).describe('The changes that take effect after a restart.'),
          configurationHash: z.string().describe('As in `GET /api/instances`, after the reload.'),
        }),
      ),
    })
    .describe('With `all`: every instance that was running.'),
]);
