/** Switches the active environment: preflight check, confirmation, audit record. */

import { isConfirmed } from '../config/production.ts';
import type { AuditRecorder } from '../request/audit-event.ts';
import type { ContractComparison } from '../request/contract-comparison.ts';
import { asGatewayError } from '../request/errors.ts';
import type { ActiveEnvironment } from './active-environment.ts';
import type { AuditLog } from './audit-log.ts';
import type { PreflightReport } from './preflight.ts';

export interface SwitchRequest {
  readonly who: string;
  readonly environment: string;
  /** For the audit log. */
  readonly reason: string;
  /** The name of the environment again, as confirmation; required for production. */
  readonly confirm?: string | undefined;
  /** Switches even if the preflight check fails. */
  readonly force: boolean;
  /** Switches even if requests of the last days would be refused there, or executed in another way. */
  readonly acknowledgeDifferences: boolean;
}

export type SwitchOutcome =
  | {
      readonly kind: 'switched';
      readonly from: string;
      readonly version: number;
      readonly preflight: PreflightReport;
      readonly contract?: ContractComparison;
      /** Why the comparison failed; only if the operator acknowledged differences without it. */
      readonly notCompared?: string;
    }
  | {
      readonly kind: 'refused';
      readonly why: string;
      readonly preflight?: PreflightReport;
      readonly contract?: ContractComparison;
    };

/** @throws GatewayError STATE_UNAVAILABLE; the environment may have been switched nevertheless */
export type SwitchEnvironment = (request: SwitchRequest) => Promise<SwitchOutcome>;

interface SwitchDependencies {
  readonly active: ActiveEnvironment;
  readonly audit: AuditRecorder;
  readonly environmentNames: () => readonly string[];
  /** @returns `undefined` if there is no environment of this name */
  readonly preflight: (environment: string) => Promise<PreflightReport> | undefined;
  /** What the environment would do with the requests of the active one; `undefined` if one is not configured. */
  readonly compareContracts: (from: string, to: string) => Promise<ContractComparison | undefined>;
  readonly isSwitchBack: IsSwitchBack;
}

/** Every use writes an audit record, also if it is refused or fails. */
export function createSwitchEnvironment({
  active,
  audit,
  environmentNames,
  preflight,
  compareContracts,
  isSwitchBack,
}: SwitchDependencies): SwitchEnvironment {
  return async (request) => {
    try {
      const outcome = await attempt(request);
      const forced = outcome.kind === 'switched' && !outcome.preflight.ok;
      const { contract, ...rest } = outcome;
      const differences = contract ? toAcknowledge(contract) : [];
      const more = differences.length > 0 ? { ...rest, differences } : rest;
      await record(request, forced ? 'forced' : outcome.kind, more);
      return outcome;
    } catch (thrown) {
      await record(request, 'failed', { why: asGatewayError(thrown).message });
      throw thrown;
    }
  };

  async function attempt({
    environment,
    confirm,
    force,
    acknowledgeDifferences,
  }: SwitchRequest): Promise<SwitchOutcome> {
    if (!isConfirmed(environment, confirm)) {
      return { kind: 'refused', why: `switching to ${environment} must be confirmed by its name` };
    }
    const report = await preflight(environment);
    if (!report)
      return { kind: 'refused', why: `unknown environment; expected ${environmentNames().join(' or ')}` };
    if (!report.ok && !force) return { kind: 'refused', why: 'the pre-flight failed', preflight: report };
    let notCompared: string | undefined;
    const contract = await comparisonFor(environment).catch((thrown: unknown) => {
      if (!acknowledgeDifferences) throw thrown;
      notCompared = asGatewayError(thrown).message; // a report that cannot be read must not prevent a switch
      return undefined;
    });
    if (contract && mustAcknowledge(contract) && !acknowledgeDifferences) {
      const why = `requests in ${contract.from} would be refused there or executed in another way, which must be acknowledged`;
      return { kind: 'refused', why, preflight: report, contract };
    }
    const { from, to } = await active.switchTo(environment);
    const compared = contract && { contract };
    return {
      kind: 'switched',
      from: from.environment,
      version: to.version,
      preflight: report,
      ...compared,
      ...(notCompared !== undefined && { notCompared }),
    };
  }

  /** A switch back is not compared: it must not depend on anything. */
  async function comparisonFor(environment: string): Promise<ContractComparison | undefined> {
    const { environment: from } = await active.read();
    if (from === environment || (await isSwitchBack(environment))) return undefined;
    return compareContracts(from, environment);
  }

  async function record(request: SwitchRequest, outcome: string, more: object): Promise<void> {
    const { who, environment, reason, force, acknowledgeDifferences } = request;
    const acknowledged = acknowledgeDifferences && { acknowledgeDifferences };
    const details = { environment, reason, force, ...acknowledged, ...more };
    await audit.record({ who, action: switchAction, outcome, details });
  }
}

/** How many differences an audit record contains; their evidence is in the report. */
const maxRecorded = 20;

const toAcknowledge = ({ differences }: ContractComparison) =>
  differences
    .filter((difference) => difference.mustAcknowledge)
    .slice(0, maxRecorded)
    .map(({ operation, path, rule, effect, count }) => ({ operation, path, rule, effect, count }));

const mustAcknowledge = ({ differences }: ContractComparison) =>
  differences.some((difference) => difference.mustAcknowledge);

/** Whether an environment was active within the last hour. Never rejects: an unknown switch only causes a question. */
export type IsSwitchBack = (environment: string) => Promise<boolean>;

/** How long a switch back needs no acknowledgement. Milliseconds. */
const switchBackMs = 3_600_000;
/** Operators do not switch more often in that time. */
const searchedRecords = 100;

export function createIsSwitchBack({ newest }: Pick<AuditLog, 'newest'>): IsSwitchBack {
  return async (environment) => {
    const records = await newest(searchedRecords).catch(() => []);
    return records.some(
      ({ action, outcome, details, at }) =>
        action === switchAction &&
        switchedOutcomes.includes(outcome) &&
        details.from === environment &&
        Date.now() - Date.parse(at) < switchBackMs,
    );
  };
}

const switchAction = 'switch environment';
const switchedOutcomes = ['switched', 'forced'];
