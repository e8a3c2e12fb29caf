/** The handlers of the admin API: one for each route of routes.ts. */

import type { Alert } from '../alerts/finding.ts';
import type { ReloadRequest, ReloadResult } from '../config/config-changes.ts';
import type { ActiveEnvironment } from '../environments/active-environment.ts';
import type { AuditLog } from '../environments/audit-log.ts';
import type { PreflightReport } from '../environments/preflight.ts';
import type { SwitchEnvironment } from '../environments/switch-environment.ts';
import type { RequestHistory } from '../request-records/request-history.ts';
import type { Purge } from '../status-cache/cache-status.ts';
import type { Fleet } from '../telemetry/fleet.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { RequestSearch } from '../telemetry/request-search.ts';
import type { Timeline } from '../telemetry/timeline.ts';
import type { HoldCircuit } from '../upstream/circuit/holds.ts';
import type { CircuitView } from '../upstream/circuit/tenant-circuits.ts';
import { AdminRefusal } from './admin-refusal.ts';
import { operatorOf } from './authenticate-operator.ts';
import { type ContractDependencies, createContractHandlers, viewComparison } from './contract-handlers.ts';
import type { Readiness } from './dashboard-snapshot.ts';
import type { EventStream } from './event-stream.ts';
import { createIdentityHandlers, type IdentityDependencies } from './identity-handlers.ts';
import { createInDoubtHandlers, type InDoubtDependencies } from './in-doubt-handlers.ts';
import { createNotificationHandlers, type NotificationDependencies } from './notification-handlers.ts';
import { openapiYaml } from './openapi/document.ts';
import { createPaymentHandlers, type PaymentDependencies } from './payment-handlers.ts';
import type { EnvironmentView } from './response-schemas.ts';
import type { AdminApi } from './routes.ts';
import type { SignIn } from './sign-in.ts';

interface AdminApiDependencies
  extends InDoubtDependencies,
    NotificationDependencies,
    ContractDependencies,
    PaymentDependencies,
    IdentityDependencies {
  readonly readiness: () => Readiness;
  readonly alerts: () => readonly Alert[];
  readonly metrics: Pick<Metrics, 'text' | 'contentType'>;
  readonly environments: () => readonly EnvironmentView[];
  readonly active: Pick<ActiveEnvironment, 'read' | 'known'>;
  readonly switchEnvironment: SwitchEnvironment;
  /** Tests an environment; `undefined` if there is none of that name. */
  readonly preflight: (environment: string) => Promise<PreflightReport> | undefined;
  /** Whether a switch to an environment is a switch back, which is not compared. Never rejects. */
  readonly isSwitchBack: (environment: string) => Promise<boolean>;
  readonly audit: Pick<AuditLog, 'newest' | 'verify' | 'record'>;
  /** The configuration in effect, its secrets masked. */
  readonly configuration: () => unknown;
  /** The same in the syntax of the configuration file. */
  readonly configurationFile: () => string;
  readonly reload: (request: ReloadRequest) => Promise<ReloadResult>;
  /** Removes the cached status of a payment, or all, on every instance. @throws GatewayError STATE_UNAVAILABLE */
  readonly purge: Purge;
  readonly circuits: () => readonly CircuitView[];
  readonly holdCircuit: HoldCircuit;
  readonly fleet: Pick<Fleet, 'instances' | 'reloadAll'>;
  readonly timeline: Pick<Timeline, 'read'>;
  readonly requestRecords: { readonly search: Pick<RequestSearch, 'find'>; readonly history: RequestHistory };
  readonly events: Pick<EventStream, 'subscribe'>;
  readonly signIn: SignIn['handlers'];
}

export function createAdminApi({
  readiness,
  alerts,
  metrics,
  environments,
  active,
  switchEnvironment,
  preflight,
  isSwitchBack,
  audit,
  configuration,
  configurationFile,
  reload,
  purge,
  circuits,
  holdCircuit,
  fleet,
  timeline,
  requestRecords: { search, history },
  inDoubt,
  resolve,
  payments,
  subscriptions,
  pollLimits,
  contractReport,
  guarded,
  compareTo,
  changeIdentities,
  events,
  signIn,
}: AdminApiDependencies): AdminApi {
  return {
    ...signIn,
    ...createInDoubtHandlers({ inDoubt, resolve, audit }),
    ...createPaymentHandlers({ payments }),
    ...createNotificationHandlers({ subscriptions, pollLimits, audit }),
    ...createIdentityHandlers({ changeIdentities }),
    ...createContractHandlers({ contractReport, guarded, compareTo }),

    getLiveness: () => ({ status: 'live' }),

    getReadiness({ response }) {
      const { ready, reasons } = readiness();
      if (!ready) response.status(503);
      return { status: ready ? 'ready' : 'not ready', reasons };
    },

    async getMetrics({ response }) {
      response.set('Content-Type', metrics.contentType).send(await metrics.text());
    },

    getOpenapi({ response }) {
      response.set('Content-Type', 'application/yaml').send(openapiYaml());
    },

    async listEnvironments() {
      const record = await active.read().catch(() => active.known());
      return {
        active: record?.environment ?? null,
        version: record?.version ?? null,
        environments: environments(),
      };
    },

    async switchEnvironment({ body, response }) {
      const outcome = await switchEnvironment({ ...body, who: operatorOf(response).name });
      if (outcome.kind === 'refused')
        throw new AdminRefusal(409, `Not switched: ${outcome.why}.`, {
          preflight: outcome.preflight,
          contract: outcome.contract && viewComparison(outcome.contract),
        });
      const { from, version, preflight: report, contract } = outcome;
      return {
        active: body.environment,
        from,
        version,
        preflight: report,
        contract: contract ? viewComparison(contract) : null,
      };
    },

    async runPreflight({ parameters: { name } }) {
      const report = await preflight(name);
      if (!report) throw new AdminRefusal(404, 'Unknown environment.');
      const from = active.known()?.environment;
      const isCompared = from !== undefined && from !== name && !(await isSwitchBack(name));
      // A report that cannot be read must not hide the result of the steps.
      const contract = isCompared ? await compareTo(from, name).catch(() => undefined) : undefined;
      return { ...report, contract: contract ? viewComparison(contract) : null };
    },

    streamEvents({ response }) {
      events.subscribe(operatorOf(response), response);
    },

    async listDecisions({ parameters: { requestId } }) {
      const mayExist = !requestId.includes('\0'); // PostgreSQL refuses such a text
      const found = mayExist ? await search.find({ requestId, ...allTime, limit: maxDecisions }) : undefined;
      if (found && found.requests.length > 0) return found.requests;
      throw new AdminRefusal(
        404,
        'No instance has a record of this X-Request-ID: the request is older than requests.keepFor, its record was not stored, or it never arrived.',
      );
    },

    listAlerts: alerts,

    listInstances: () => fleet.instances(),

    listTimeline({ query }) {
      const { fromMs, toMs } = periodOf(query, defaultTimelineMs);
      return timeline.read(fromMs, query.to === undefined ? latestMs : toMs); // the clock of the database may be ahead
    },

    async searchRequests({ query: { from, to, limit, status, minDuration, ...others } }) {
      const conditions = {
        ...others,
        status: status === undefined ? undefined : Number(status),
        minDurationMs: minDuration,
      };
      const fromMs = from === undefined ? allTime.fromMs : Date.parse(from);
      const toMs = to === undefined ? allTime.toMs : Date.parse(to);
      const result = await search.find({ ...conditions, fromMs, toMs, limit: Number(limit) });
      const { requests, searchedFromMs, isComplete, notStored } = result;
      const searchedFrom = new Date(searchedFromMs).toISOString();
      return { requests, searchedFrom, complete: isComplete, notStored };
    },

    async listErrors() {
      const errors = await history.errors();
      return errors.map(({ lastAtMs, ...error }) => ({ ...error, lastAt: new Date(lastAtMs).toISOString() }));
    },

    async showHistory({ query }) {
      const { fromMs, toMs } = periodOf(query, defaultHistoryMs);
      const { resolutionSeconds, points } = await history.figures(fromMs, toMs);
      return {
        resolutionSeconds,
        points: points.map((point) => ({ ...point, at: new Date(point.at * 1_000).toISOString() })),
      };
    },

    listCircuits: circuits,

    async holdCircuit({ parameters: { environment, lane }, body: { hold, reason, for: forMs }, response }) {
      const find = () => circuits().find((one) => one.environment === environment && one.lane === lane);
      const circuit = find();
      if (!circuit) throw new AdminRefusal(404, 'Unknown circuit: no such environment or lane.');
      const id = { environment: circuit.environment, lane: circuit.lane };
      await holdCircuit({ ...id, who: operatorOf(response).name, hold, reason, forMs });
      return find() ?? circuit; // a reload may have removed it
    },

    listAuditRecords: () => audit.newest(maxAuditRecords),

    verifyAuditLog: () => audit.verify(),

    async purgeStatusCache({ query: { reason, ...selection }, response }) {
      const { environment, payment: paymentId } = selection;
      if (environment !== undefined && environments().every(({ name }) => name !== environment))
        throw new AdminRefusal(404, 'Unknown environment.');
      const purged = purge(selection);
      const outcome = await purged.then(
        () => 'done',
        () => 'failed',
      );
      const details = { environment, paymentId, reason };
      await audit.record({ who: operatorOf(response).name, action: 'purge status cache', outcome, details });
      await purged;
      response.status(204).end();
    },

    showConfiguration({ response }) {
      if (response.req.accepts(['application/json', 'application/yaml']) !== 'application/yaml')
        return configuration();
      response.set('Content-Type', 'application/yaml').send(configurationFile());
      return undefined;
    },

    async reloadConfiguration({ body: { reason, all }, response }) {
      if (all) {
        const instances = await fleet.reloadAll(operatorOf(response).name, reason);
        if (instances) return { instances };
        throw new AdminRefusal(
          409,
          'Not reloaded: another reload of all instances is in progress; try again in 15 s.',
        );
      }
      const result = await reload({ by: 'operator', operator: operatorOf(response).name, reason });
      if (result.kind === 'applied')
        return { changes: result.changes, restartRequired: result.restartRequired };
      const text = 'Not reloaded: the new configuration cannot be used; the previous one stays in effect.';
      throw new AdminRefusal(409, text, { errors: result.errors });
    },
  };
}

const maxAuditRecords = 100;
const maxDecisions = 100;
/** The end of the time that `Date` knows. */
const latestMs = 8_640_000_000_000_000;

const allTime = { fromMs: 0, toMs: Number.POSITIVE_INFINITY };
/** The lengths of periods whose beginning is not given. Milliseconds. */
const defaultTimelineMs = 24 * 3_600_000;
const defaultHistoryMs = 3_600_000;

/** In milliseconds since 1970. */
function periodOf(
  { from, to }: { readonly from?: string | undefined; readonly to?: string | undefined },
  defaultMs: number,
) {
  const toMs = to === undefined ? Date.now() : Date.parse(to);
  return { fromMs: from === undefined ? toMs - defaultMs : Date.parse(from), toMs };
}
