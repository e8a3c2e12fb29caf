/** The admin API with a real environment switch, audit log, database and state in memory; pre-flights and other parts are fakes. */

import { createHash } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { createAdminApi } from '../../src/admin/admin-api.ts';
import { createAdminApp } from '../../src/admin/admin-app.ts';
import type { ContractDependencies } from '../../src/admin/contract-handlers.ts';
import type { DashboardSources } from '../../src/admin/dashboard-snapshot.ts';
import { createEventStream, type EventStream } from '../../src/admin/event-stream.ts';
import { createOperatorAccess } from '../../src/admin/operator-access.ts';
import { createSessions } from '../../src/admin/sessions.ts';
import { createSignIn } from '../../src/admin/sign-in.ts';
import { createSignInThrottle } from '../../src/admin/sign-in-throttle.ts';
import { createGuardedEnvironments } from '../../src/contract-guard/guarded-environments.ts';
import type { PreflightReport } from '../../src/environments/preflight.ts';
import { createIsSwitchBack, createSwitchEnvironment } from '../../src/environments/switch-environment.ts';
import { createChangeIdentities } from '../../src/identities/change-identities.ts';
import { createKnownNames } from '../../src/identities/known-names.ts';
import type { ManageSubscriptions } from '../../src/notifications/manage-subscriptions.ts';
import { createPaymentViews } from '../../src/payments/payment-views.ts';
import { createIdentityTable } from '../../src/store/identities.ts';
import { createPaymentHistoryTable } from '../../src/store/payment-history.ts';
import { createWebhookMessageTable } from '../../src/store/webhook-messages.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { createFailingState, type FailingState } from '../kit/failing-state.ts';
import type { FaultyDatabase } from '../kit/faulty-database.ts';
import { configOf } from '../kit/gateway.ts';
import { createSwitchable } from '../kit/switchable.ts';

/** Credentials: Olga has the role `operate`, Rita has the role `read`. */
export const asOperator = { Authorization: 'Bearer token-of-olga' };
export const asReader = { Authorization: 'Bearer token-of-rita' };

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const operators = [
  { name: 'olga', tokenSha256: sha256('token-of-olga'), role: 'operate' },
  { name: 'rita', tokenSha256: sha256('token-of-rita'), role: 'read' },
] as const;

const none = { circuits: [], certificate: null, signingCertificate: null };
export const bankEnvironments = [
  {
    name: 'sandbox',
    baseUrl: 'https://sandbox.bank.example',
    standardVersion: '1.3.11',
    production: false,
    ...none,
  },
  {
    name: 'production',
    baseUrl: 'https://bank.example/psd2',
    standardVersion: '1.3.6',
    production: true,
    ...none,
  },
];

export const passedPreflight: PreflightReport = {
  ok: true,
  steps: [{ step: 'answer', ok: true, detail: 'status 200' }],
};
export const failedPreflight: PreflightReport = {
  ok: false,
  steps: [{ step: 'tcp', ok: false, detail: 'ECONNREFUSED' }],
};

const noSubscriptions: ManageSubscriptions = {
  list: async () => [],
  find: async () => undefined,
  count: async () => [],
  endpoints: async () => [],
  clients: () => [],
  resend: async () => undefined,
  async *resendDead() {},
  end: async () => undefined,
};

interface AdminApiUnderTest {
  readonly app: RequestListener;
  readonly state: FailingState;
  readonly database: FaultyDatabase;
  readonly events: Pick<EventStream, 'publish' | 'close'>;
}

const nothingChecked: ContractDependencies = {
  contractReport: { read: async () => ({ fromMs: 0, deviations: [], messages: [], skipped: [] }) },
  guarded: () =>
    createGuardedEnvironments(
      [],
      () => false,
      () => {},
    ),
  compareTo: async () => undefined,
};

/**
 * @param report the result of every pre-flight. @param sources replace those of the dashboard. @param adminSettings of `admin`.
 * @param subscriptions of webhooks. @param contract the report of the contract guard
 */
export function startAdminApi(
  report = passedPreflight,
  sources: Partial<DashboardSources> = {},
  adminSettings: object = {},
  subscriptions: ManageSubscriptions = noSubscriptions,
  contract: ContractDependencies = nothingChecked,
): AdminApiUnderTest {
  const state = createFailingState();
  const log = () => {};
  const { database, active, audit } = createSwitchable(state.pubsub, log);
  const preflight = (name: string) =>
    bankEnvironments.some((environment) => environment.name === name) ? Promise.resolve(report) : undefined;
  const common = { environments: () => bankEnvironments, active, circuits: () => [] };
  const { readiness = () => ({ ready: true, reasons: [] }) } = sources;
  const { admin } = configOf({
    environments: { sandbox: { baseUrl: 'https://bank.example' } },
    admin: { hosts: ['gateway.internal'], ...adminSettings },
  });
  const sessions = createSessions(database);
  const credentials = { operators, oidcClientSecret: undefined, oidcCa: undefined };
  const access = createOperatorAccess(admin, credentials, sessions);
  const throttle = createSignInThrottle();
  const signIn = createSignIn({ access, sessions, throttle, audit, log }).handlers;
  const isSwitchBack = createIsSwitchBack(audit);
  const events = createEventStream({
    ...common,
    readiness,
    shapers: () => [],
    inDoubt: () => undefined,
    alerts: () => [],
    canPay: () => 'yes',
    recentSeconds: () => [],
    instances: () => [],
    fleet: () => ({ isComplete: true, why: null }),
    instanceId: 'host-0123456789ab',
    listenerCertificate: () => null,
    links: () => ({ grafana: null, traces: null }),
    mayRead: access.isValid,
    ...sources,
  });
  const _changeIdentities = createChangeIdentities({
    table: createIdentityTable(database),
    clients: () => [],
    audit,
  });
  const api = createAdminApi({
    ...common,
    readiness,
    alerts: () => [],
    metrics: createMetrics(),
    preflight,
    events,
    switchEnvironment: createSwitchEnvironment({
      active,
      audit,
      environmentNames: () => ['sandbox', 'production'],
      preflight,
      compareContracts: contract.compareTo,
      isSwitchBack,
    }),
    isSwitchBack,
    audit,
    purge: async () => {},
    changeIdentities: async () => ({ outcome: 'done', text: 'Changed.' }),
    holdCircuit: async () => {},
    fleet: { instances: () => [], reloadAll: async () => [] },
    timeline: { read: async () => [] },
    requestRecords: {
      search: { find: async () => ({ requests: [], searchedFromMs: 0, isComplete: true, notStored: 0 }) },
      history: { figures: async () => ({ resolutionSeconds: 60, points: [] }), errors: async () => [] },
    },
    inDoubt: { all: async () => [] },
    resolve: async () => ({ kind: 'unknown' }),
    payments: createPaymentViews({
      table: createPaymentHistoryTable(database),
      messages: createWebhookMessageTable(database),
      audit,
      names: createKnownNames(createIdentityTable(database)),
      recordsKeptForMs: () => 3_600_000,
    }),
    subscriptions,
    pollLimits: () => [{ environment: 'sandbox', perSecond: 10 }],
    ...contract,
    configuration: () => ({ log: { level: 'info' } }),
    configurationFile: () => 'log:\n  level: info\n',
    reload: async () => ({ kind: 'applied', changes: [], restartRequired: [] }),
    signIn,
  });
  return {
    events,
    app: createAdminApp({ access, throttle, log, api }),
    state,
    database,
  };
}
