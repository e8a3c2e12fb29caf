/** The safest click of the day: another environment for new payments, proven, confirmed, and on record. */

import type { AuditTrail } from '../flow/audit-event.ts';
import { asGatewayError } from '../flow/errors.ts';
import type { ActiveEnvironment } from './active-environment.ts';
import type { PreflightReport } from './preflight.ts';

/** What an operator asks for. */
export interface SwitchOrder {
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
export type SwitchEnvironment = (order: SwitchOrder) => Promise<SwitchOutcome>;

/** Where money moves: a slip of the finger must not be enough. */
const confirmed = 'production';

interface SwitchParts {
  readonly active: ActiveEnvironment;
  readonly audit: AuditTrail;
  /** Tries an environment out; `undefined` if there is none of that name. */
  readonly tryOut: (environment: string) => Promise<PreflightReport> | undefined;
}

/** The switch of one gateway; every use of it is an audit record, refused and failed ones included. */
export function createSwitch({ active, audit, tryOut }: SwitchParts): SwitchEnvironment {
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

  async function attempt({ environment, confirm, force }: SwitchOrder): Promise<SwitchOutcome> {
    if (environment === confirmed && confirm !== environment) {
      return { kind: 'refused', why: `switching to ${confirmed} must be confirmed by its name` };
    }
    const report = await tryOut(environment);
    if (!report) return { kind: 'refused', why: 'there is no environment of this name' };
    if (!report.ok && !force) return { kind: 'refused', why: 'the pre-flight failed', preflight: report };
    const { from, to } = await active.change(environment);
    return { kind: 'switched', from: from.environment, version: to.version, preflight: report };
  }

  async function record(order: SwitchOrder, outcome: string, more: object): Promise<void> {
    const { who, environment, reason, force } = order;
    const details = { environment, reason, force, ...more };
    await audit.record({ who, action: 'switch environment', outcome, details });
  }
}
