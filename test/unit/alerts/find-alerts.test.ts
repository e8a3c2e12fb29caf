/** What each alert is found in: one situation each, beside one that is nearly the same and needs none. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type AlertFacts, findAlerts } from '../../../src/alerts/find-alerts.ts';
import type { CircuitView } from '../../../src/upstream/circuit/tenant-circuits.ts';
import { healthyFacts, initiations, instanceView, noonMs } from '../../kit/alert-facts.ts';

const circuit: CircuitView = {
  environment: 'production',
  lane: 'write',
  state: 'closed',
  hold: null,
  until: null,
  reason: null,
  cause: null,
  tenants: [],
};

const limiter = {
  environment: 'production',
  waiting: { write: 0, read: 0, status: 0 },
  running: 0,
  tenantsAtLimit: [],
  perSecond: 50,
  pauses: [],
  pausedPayments: 0,
  longestPauseMs: 0,
  silentWrites: 0,
};

const doubt = {
  environment: 'production',
  operation: 'initiatePayment',
  isFirstFactor: false,
  count: 2,
  twice: 0,
  sinceMs: noonMs - 60_000,
};

const endpoint = { tenant: 'shop', endpoint: 'https://shop.example', messages: 3, sinceMs: noonMs - 600_000 };

const usual = [{ environment: 'production', refusedShare: 0.05, answerMs: 100 }];

/** The last minute, and what came in its last seconds. */
const over =
  (...counts: AlertFacts['initiationsOf'] extends (seconds: number) => infer Counts ? Counts : never) =>
  () =>
    counts;

const other = 'gateway-000000000002';

interface Case {
  readonly facts: Partial<AlertFacts>;
  /** `severity id environment` */
  readonly found: readonly string[];
  readonly text?: RegExp;
}

const cases: Readonly<Record<string, Case>> = {
  'no traffic': { facts: {}, found: [] },
  'payments that the bank accepts': {
    facts: { initiationsOf: over(initiations(60, 'accepted')) },
    found: [],
  },
  'most payments with 401': {
    facts: { initiationsOf: over(initiations(20, 'accepted'), initiations(40, '401 CERTIFICATE_REVOKED')) },
    found: ['critical initiations-unauthorised production'],
    text: /refuses payments with 401 CERTIFICATE_REVOKED: 40 of 60 initiations in the last 60 s/,
  },
  'some payments with 401': {
    facts: { initiationsOf: over(initiations(50, 'accepted'), initiations(10, '401 TOKEN_INVALID')) },
    found: [],
  },
  'a few payments a minute, all with 403': {
    facts: { initiationsOf: over(initiations(5, '403 SERVICE_BLOCKED')) },
    found: ['critical initiations-unauthorised production'],
  },
  'five payments of one TPP, all with an expired token': {
    facts: { initiationsOf: over(initiations(5, '401 TOKEN_EXPIRED')) },
    found: [],
  },
  'ten payments of one of several tenants, all with an expired token': {
    facts: { initiationsOf: over(initiations(10, '401 TOKEN_EXPIRED')) },
    found: ['warning initiations-unauthorised production'],
  },
  'ten payments of the only tenant, all with an expired token': {
    facts: { tenants: 1, initiationsOf: over(initiations(10, '401 TOKEN_EXPIRED')) },
    found: ['critical initiations-unauthorised production'],
  },
  'payments of one of several tenants, with an expired token or without an answer': {
    facts: { initiationsOf: over(initiations(8, '401 TOKEN_EXPIRED'), initiations(2, 'failed')) },
    found: ['critical initiations-unauthorised production'],
  },
  'some payments that fail for two reasons': {
    facts: {
      initiationsOf: over(initiations(60, 'accepted'), initiations(20, 'failed'), initiations(15, 'blocked')),
    },
    found: ['warning initiations-fail production'],
    text: /35 of 95 initiations in the last 60 s fail: 20 have no usable answer .* and 15 were refused by the gateway/,
  },
  'a third of the payments with 401': {
    facts: { initiationsOf: over(initiations(40, 'accepted'), initiations(20, '401')) },
    found: ['warning initiations-unauthorised production'],
  },
  'one product that fails': {
    facts: {
      initiationsOf: over(
        initiations(100, 'accepted'),
        initiations(8, 'failed', { product: 'payments/instant-sepa-credit-transfers' }),
      ),
    },
    found: ['warning initiations-fail production'],
    text: /8 of 8 initiations of payments\/instant/,
  },
  'two payments, both with 403': { facts: { initiationsOf: over(initiations(2, '403')) }, found: [] },
  'payments of the sandbox with 401': {
    facts: { initiationsOf: over(initiations(20, '401', { environment: 'sandbox' })) },
    found: ['warning initiations-unauthorised sandbox'],
  },
  'one product with 403': {
    facts: {
      initiationsOf: over(
        initiations(50, 'accepted'),
        initiations(15, '403 PRODUCT_INVALID', { product: 'payments/instant-sepa-credit-transfers' }),
      ),
    },
    found: ['warning initiations-unauthorised production'],
    text: /15 of 15 initiations of payments\/instant-sepa-credit-transfers/,
  },
  'one product with 400, with a usual share of 5 %': {
    facts: {
      usual,
      initiationsOf: over(
        initiations(50, 'accepted'),
        initiations(15, '400 PRODUCT_INVALID', { product: 'payments/instant-sepa-credit-transfers' }),
      ),
    },
    found: ['warning initiations-refused production'],
    text: /most with 400 PRODUCT_INVALID: 15 of 15 .* During the last day, it refused 5 %/,
  },
  'as many 400 as careless TPPs cause': {
    facts: { usual, initiationsOf: over(initiations(50, 'accepted'), initiations(15, '400 FORMAT_ERROR')) },
    found: [],
  },
  'rejections with 201': {
    facts: { usual, initiationsOf: over(initiations(10, 'accepted'), initiations(20, '201 RJCT')) },
    found: ['warning initiations-refused production'],
  },
  'one failed payment': {
    facts: { initiationsOf: over(initiations(59, 'accepted'), initiations(1, 'failed')) },
    found: [],
  },
  'some failed payments': {
    facts: { initiationsOf: over(initiations(54, 'accepted'), initiations(6, 'failed')) },
    found: ['warning initiations-fail production'],
  },
  'most payments failed': {
    facts: { initiationsOf: over(initiations(20, 'accepted'), initiations(30, 'failed')) },
    found: ['critical initiations-fail production'],
  },
  'payments that fail for several reasons': {
    facts: {
      initiationsOf: over(
        initiations(20, 'accepted'),
        initiations(10, '401 CERTIFICATE_REVOKED'),
        initiations(14, 'failed'),
        initiations(6, 'blocked'),
      ),
    },
    found: ['critical initiations-fail production'],
    text: /^30 of 50 initiations in the last 60 s fail: 10 the bank has refused with 401 CERTIFICATE_REVOKED, 14 have no usable/,
  },
  'payments of one tenant that the queue refuses': {
    facts: { initiationsOf: over(initiations(20, 'accepted'), initiations(80, 'tenant-blocked')) },
    found: ['warning initiations-blocked production'],
    text: /^80 of 100 initiations .* concern only their tenants/,
  },
  'payments that fail, beside many of one tenant that the queue refuses': {
    facts: {
      initiationsOf: over(
        initiations(5, 'accepted'),
        initiations(15, 'failed'),
        initiations(80, 'tenant-blocked'),
      ),
    },
    found: ['critical initiations-fail production', 'warning initiations-blocked production'],
  },
  'payments of one of two tenants that fail': {
    facts: {
      initiationsOf: over(
        initiations(8, 'accepted'),
        initiations(15, '401 TOKEN_INVALID', { tenants: [[1, 15]] }),
      ),
    },
    found: ['warning initiations-unauthorised production'],
    text: /15 of 23 initiations in the last 60 s\. Those of as many other tenants succeed\.$/,
  },
  'payments of two of three tenants that fail': {
    facts: {
      initiationsOf: over(
        initiations(8, 'accepted'),
        initiations(15, 'failed', {
          tenants: [
            [1, 8],
            [2, 7],
          ],
        }),
      ),
    },
    found: ['critical initiations-fail production'],
  },
  'a revoked certificate beside many payments of a careless TPP': {
    facts: {
      initiationsOf: over(
        initiations(50, '401 CERTIFICATE_REVOKED'),
        initiations(400, '400 FORMAT_ERROR', { tenants: [[1, 400]] }),
      ),
    },
    found: ['critical initiations-unauthorised production', 'warning initiations-refused production'],
  },
  'payments that succeed again after an outage': {
    facts: {
      initiationsOf: (seconds) =>
        seconds <= 20
          ? [initiations(3, 'accepted')]
          : [initiations(3, 'accepted'), initiations(40, 'failed')],
    },
    found: [],
  },
  'failures minutes ago, if nobody has tried to pay since': {
    facts: { initiationsOf: (seconds) => (seconds >= 300 ? [initiations(5, 'failed')] : []) },
    found: ['critical initiations-fail production'],
  },
  'as many products as a TPP invents': {
    facts: {
      initiationsOf: over(
        initiations(300, 'accepted'),
        ...Array.from({ length: 20 }, (_, index) =>
          initiations(10, '404 PRODUCT_UNKNOWN', { product: `payments/p${index}` }),
        ),
      ),
    },
    found: Array.from({ length: 5 }, () => 'warning initiations-refused production'),
  },
  'payments blocked before their environment is known': {
    facts: { initiationsOf: over(initiations(30, 'blocked', { environment: '' })) },
    found: ['critical initiations-blocked production'],
  },
  'a slow bank': {
    facts: { usual, initiationsOf: over(initiations(10, 'accepted', { bankMs: 30_000 })) },
    found: ['warning bank-slow production'],
    text: /takes 3\.0 s for an initiation, instead of 100 ms/,
  },
  'one slow answer': {
    facts: {
      usual,
      initiationsOf: over(initiations(9, 'accepted'), initiations(1, 'accepted', { bankMs: 10_000 })),
    },
    found: [],
  },
  'time-outs': {
    facts: {
      usual,
      initiationsOf: over(initiations(60, 'accepted'), initiations(2, 'failed', { bankMs: 60_000 })),
    },
    found: [],
  },
  'failed reads': { facts: { requests: 100, failed: 10 }, found: ['warning requests-fail '] },
  'few failed reads': { facts: { requests: 100, failed: 9 }, found: [] },
  'payments in doubt in production': {
    facts: { doubts: [doubt, { ...doubt, operation: 'cancelPayment', count: 1, twice: 1 }] },
    found: ['critical in-doubt production'],
    text: /^2 payments and 1 cancellation are in doubt in production: .* 1 of them reached the bank twice/,
  },
  'a payment in doubt in the sandbox': {
    facts: { doubts: [{ ...doubt, environment: 'sandbox', count: 1 }] },
    found: ['info in-doubt sandbox'],
    text: /^1 payment is in doubt in sandbox: the bank may have executed it\.$/,
  },
  'a first factor in doubt': {
    facts: { doubts: [{ ...doubt, operation: 'updatePsuData', isFirstFactor: true }] },
    found: ['warning authorisation-in-doubt production'],
    text: /^2 steps of authorisations are/,
  },
  'an old unfinished write': {
    facts: { oldestUnfinishedMs: 300_000 },
    found: ['warning write-unfinished '],
  },
  'an open circuit of the active environment': {
    facts: {
      circuits: [
        { ...circuit, state: 'open', reason: '10 of 10 calls failed' },
        { ...circuit, lane: 'read', state: 'half-open', reason: '10 of 10 calls failed' },
      ],
    },
    found: ['critical circuit-open production', 'warning circuit-open production'],
    text: /^The write circuit of production is open: 10 of 10 calls failed\.$/,
  },
  'an open circuit of reads': {
    facts: { circuits: [{ ...circuit, lane: 'status', state: 'open' }] },
    found: ['warning circuit-open production'],
  },
  'an open circuit of another environment': {
    facts: { circuits: [{ ...circuit, environment: 'sandbox', state: 'open' }] },
    found: ['warning circuit-open sandbox'],
  },
  'a circuit on probation': {
    facts: { circuits: [{ ...circuit, state: 'probation' }] },
    found: ['warning circuit-open production'],
  },
  'a circuit held open': {
    facts: {
      circuits: [{ ...circuit, hold: 'open', reason: 'maintenance', until: '2026-11-29T12:10:00.000Z' }],
    },
    found: ['critical circuit-held production'],
    text: /is held open by an operator until 12:10:00 UTC: maintenance\./,
  },
  'a circuit held closed': {
    facts: { circuits: [{ ...circuit, state: 'open', hold: 'closed' }] },
    found: ['warning circuit-held production'],
  },
  'a circuit that is open for one tenant': {
    facts: {
      circuits: [
        { ...circuit, tenants: [{ tenant: 'shop', state: 'open', until: null, reason: null, cause: null }] },
      ],
    },
    found: ['warning circuit-open-for-tenant production'],
    text: /^The write circuit of production is open for shop, closed for the others\.$/,
  },
  'a circuit that is open for one tenant, and on probation for another one': {
    facts: {
      circuits: [
        {
          ...circuit,
          tenants: [
            { tenant: 'shop', state: 'half-open', until: null, reason: null, cause: null },
            { tenant: 'rival', state: 'probation', until: null, reason: null, cause: null },
          ],
        },
      ],
    },
    found: ['warning circuit-open-for-tenant production'],
    text: /is open or on probation for shop and rival, closed for the others\.$/,
  },
  'a bank that answers no payment': {
    facts: { limiters: [{ ...limiter, silentWrites: 3 }] },
    found: ['warning bank-silent production'],
    text: /is silent: 3 payments or authorisations have waited/,
  },
  'two payments without an answer': { facts: { limiters: [{ ...limiter, silentWrites: 2 }] }, found: [] },
  'a lowered rate': {
    facts: { limiters: [{ ...limiter, perSecond: 15.93 }] },
    found: ['warning rate-lowered production'],
    text: /called at 15\.9 of 50\/s/,
  },
  'a rate that has nearly recovered': { facts: { limiters: [{ ...limiter, perSecond: 46 }] }, found: [] },
  'a pause': {
    facts: {
      limiters: [
        {
          ...limiter,
          pauses: [{ scope: 'product', lane: 'status', tenant: 'shop', product: 'sepa', pausedMs: 2_500 }],
        },
      ],
    },
    found: ['warning bank-pauses production'],
    text: /status reads of shop for sepa wait for another 3 s/,
  },
  'a long queue, and a tenant at its limit': {
    facts: {
      limiters: [{ ...limiter, waiting: { write: 1, read: 40, status: 60 }, tenantsAtLimit: ['shop'] }],
    },
    found: ['warning calls-queue production', 'info tenant-at-limit production'],
  },
  'an endpoint that fails for 10 minutes': {
    facts: { endpoints: [endpoint, { ...endpoint, tenant: 'rival', sinceMs: noonMs - 599_000 }] },
    found: ['warning webhook-endpoint-fails '],
    text: /^https:\/\/shop\.example of shop accepts no messages: 3 messages wait\.$/,
  },
  'messages given up, and failing reads': {
    facts: { deadMessages: 1, failingSubscriptions: 2 },
    found: ['warning webhooks-given-up ', 'warning subscriptions-failing '],
  },
  'changes of the bank': {
    facts: {
      bankChanges: [1, 2].map((number) => ({
        ...{ environment: 'production', operation: 'getPayment', path: `/field${number}`, rule: 'type' },
        changedAtMs: noonMs - number,
      })),
    },
    found: ['warning bank-has-changed production'],
    text: /2 new deviations, last \/field1 \(type\)/,
  },
  'internal errors': {
    facts: {
      internalErrors: ['', 'production'].map((environment) => ({
        ...{ environment, count: 1, lastRequestId: 'request-1' },
      })),
    },
    found: ['warning internal-errors ', 'critical internal-errors production'],
  },
  'an unusable database': {
    facts: { database: { ...healthyFacts().database, problem: 'connection refused' } },
    found: ['critical database-unavailable '],
  },
  'a slow database': {
    facts: { database: { ...healthyFacts().database, slowMs: 250.4 } },
    found: ['warning database-slow '],
    text: /250 ms/,
  },
  'a database that failed over 14 minutes ago, and one in memory': {
    facts: {
      database: { ...healthyFacts().database, failedOverAtMs: noonMs - 840_000, isInMemory: true },
    },
    found: ['info database-failed-over ', 'info database-in-memory '],
  },
  'what the settings of the database may lose': {
    facts: {
      database: {
        ...healthyFacts().database,
        warnings: [
          { kind: 'no-standby', text: 'no standby', isOld: true },
          { kind: 'no-synchronous-standby', text: 'not synchronous', isOld: true },
          { kind: 'standby-missing', text: 'missing', isOld: false },
          { kind: 'failover', text: 'lost', isOld: false },
        ],
      },
    },
    found: [
      'info database-may-lose-payments ',
      'warning database-may-lose-payments ',
      'critical database-standby-missing ',
      'critical database-lost-writes ',
    ],
  },
  'a standby that has gone': {
    facts: {
      database: {
        ...healthyFacts().database,
        warnings: [{ kind: 'no-standby', text: 'no standby', isOld: false }],
      },
    },
    found: ['warning database-may-lose-payments '],
  },
  'no Redis': { facts: { redisProblems: ['cannot connect'] }, found: ['warning redis-unavailable '] },
  'payments that are stopped': {
    facts: { paymentsStopped: 'the active environment is not configured' },
    found: ['critical payments-stopped '],
    text: /^The active environment is not configured\.$/,
  },
  'a refused reload': { facts: { reloadErrors: ['a', 'b'] }, found: ['warning reload-refused '] },
  'a late event loop': { facts: { eventLoopDelayMs: 251 }, found: ['warning overloaded '] },
  'load that is shed': {
    facts: { shedding: 'status-reads' },
    found: ['warning overloaded '],
    text: /refuses status reads/,
  },
  'load that is shed, with the payments': {
    facts: { shedding: 'everything' },
    found: ['critical overloaded '],
    text: /refuses all requests/,
  },
  'refused connections': {
    facts: { connectionsAcceptedForMs: 59_999 },
    found: ['warning overloaded '],
    text: /has refused connections/,
  },
  'a tenant without storage': {
    facts: { tenantsWithoutStorage: ['shop'] },
    found: ['warning storage-limit '],
  },
  'the only tenant without storage': {
    facts: { tenantsWithoutStorage: ['shop'], tenants: 1 },
    found: ['critical storage-limit '],
  },
  'payments that fail in production, while another environment is active': {
    facts: { active: 'backup', initiationsOf: over(initiations(20, 'failed')) },
    found: ['warning initiations-fail production'],
  },
  'late polls': { facts: { overduePolls: 1 }, found: ['warning polls-overdue '] },
  'a killed instance': {
    facts: { instances: [instanceView(), instanceView({ id: other, status: 'down' })] },
    found: ['warning instance-lost '],
    text: /its last report was at 12:00:00 UTC/,
  },
  'a stopped instance': {
    facts: { instances: [instanceView(), instanceView({ id: other, status: 'stopped' })] },
    found: [],
  },
  'an instance that was started again': {
    facts: {
      instances: [
        instanceView({ since: '2026-11-29T12:00:01.000Z' }),
        instanceView({ id: other, status: 'down', lastSeen: '2026-11-29T12:00:00.000Z' }),
      ],
    },
    found: ['warning instance-restarts '],
  },
  'another instance that is not ready': {
    facts: {
      instances: [
        instanceView(),
        instanceView({ id: other, ready: false, reasons: ['the database is unavailable'] }),
      ],
    },
    found: ['warning instance-not-ready '],
    text: /is not ready: the database/,
  },
  'another instance that stops': {
    facts: { instances: [instanceView(), instanceView({ id: other, ready: false, reasons: ['draining'] })] },
    found: [],
  },
  'no reports of the others': {
    facts: { scope: { isComplete: false, why: 'The database is unavailable.' } },
    found: ['warning instances-unseen '],
  },
  'instances with different configurations': {
    facts: { instances: [instanceView(), instanceView({ id: other, configurationHash: 'b' })] },
    found: ['warning configurations-differ '],
  },
  'instances that differ': {
    facts: {
      instances: [
        instanceView(),
        instanceView({ id: other, configurationHash: 'b', version: '9', clockDifferenceMs: 2_001 }),
      ],
      expectedInstances: 1,
    },
    found: [
      'info configurations-differ ',
      'info versions-differ ',
      'warning clocks-differ ',
      'warning more-instances-than-expected ',
    ],
  },
};

describe('alerts are found in', () => {
  for (const [name, { facts, found, text }] of Object.entries(cases))
    test(name, () => {
      const findings = findAlerts(healthyFacts(facts));
      assert.deepEqual(
        findings.map(({ id, severity, environment = '' }) => `${severity} ${id} ${environment}`),
        found,
      );
      if (text) assert.match(findings[0]?.text ?? '', text);
    });
});
