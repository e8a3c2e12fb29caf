/** The safest click of the day: another environment for new payments, proven, confirmed, and on record. */

import type { AuditRecorder } from '../request/audit-event.ts';
import { asGatewayError } from '../request/errors.ts';
import type { ActiveEnvironment } from './active-environment.ts';
import type { PreflightReport } from './preflight.ts';

/** What an operator asks for. */
export interface SwitchRequest {
  readonly who: string;
  readonly environment: string;
  /** Stands in the audit log. */
  readonly reason: string;
  /** The environment's name again, where it needs to be confirmed. */
  readonly confirm?: string | undefined;
  /** Switches although the pre-flight fails. */
  readonly force: boolean;
}

export type SwitchOutcome =
  | {
      readonly kind: 'switched';
      readonly from: string;
      readonly version: number;
      readonly preflight: PreflightReport;
    }
  | { readonly kind: 'refused'; readonly why: string; readonly preflight?: PreflightReport };

/** @throws GatewayError STATE_UNAVAILABLE if the shared state cannot be reached */
export type SwitchEnvironment = (order: SwitchRequest) => Promise<SwitchOutcome>;

/** Where money moves: a slip of the finger must not be enough. */
const needsConfirmation = 'production';

interface SwitchDependencies {
  readonly active: ActiveEnvironment;
  readonly audit: AuditRecorder;
  /** Tries an environment out; `undefined` if there is none of that name. */
  readonly preflight: (environment: string) => Promise<PreflightReport> | undefined;
}

/** The switch of one gateway; every use of it is an audit record, refused and failed ones included. */
export function createSwitchEnvironment({ active, audit, preflight }: SwitchDependencies): SwitchEnvironment {
  return async (order) => {
    try {
      const outcome = await attempt(order);
      const forced = outcome.kind === 'switched' && !outcome.preflight.ok;
      await record(order, forced ? 'forced' : outcome.kind, outcome);
      return outcome;
    } catch (thrown) {
      await record(order, 'failed', { why: asGatewayError(thrown).message });
      throw thrown;
    }
  };

  async function attempt({ environment, confirm, force }: SwitchRequest): Promise<SwitchOutcome> {
    if (environment === needsConfirmation && confirm !== environment) {
      return { kind: 'refused', why: `switching to ${needsConfirmation} must be confirmed by its name` };
    }
    const report = await preflight(environment);
    if (!report) return { kind: 'refused', why: 'there is no environment of this name' };
    if (!report.ok && !force) return { kind: 'refused', why: 'the pre-flight failed', preflight: report };
    const { from, to } = await active.switchTo(environment);
    return { kind: 'switched', from: from.environment, version: to.version, preflight: report };
  }

  async function record(order: SwitchRequest, outcome: string, more: object): Promise<void> {
    const { who, environment, reason, force } = order;
    const details = { environment, reason, force, ...more };
    await audit.record({ who, action: 'switch environment', outcome, details });
  }
}
