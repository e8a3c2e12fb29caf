/** Switches the active environment: preflight check, confirmation, audit record. */

import { isConfirmed } from '../config/production.ts';
import type { AuditRecorder } from '../request/audit-event.ts';
import { asGatewayError } from '../request/errors.ts';
import type { ActiveEnvironment } from './active-environment.ts';
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
}

export type SwitchOutcome =
  | {
      readonly kind: 'switched';
      readonly from: string;
      readonly version: number;
      readonly preflight: PreflightReport;
    }
  | { readonly kind: 'refused'; readonly why: string; readonly preflight?: PreflightReport };

/** @throws GatewayError STATE_UNAVAILABLE; the environment may have been switched nevertheless */
export type SwitchEnvironment = (request: SwitchRequest) => Promise<SwitchOutcome>;

interface SwitchDependencies {
  readonly active: ActiveEnvironment;
  readonly audit: AuditRecorder;
  /** @returns `undefined` if there is no environment of this name */
  readonly preflight: (environment: string) => Promise<PreflightReport> | undefined;
}

/** Every use writes an audit record, also if it is refused or fails. */
export function createSwitchEnvironment({ active, audit, preflight }: SwitchDependencies): SwitchEnvironment {
  return async (request) => {
    try {
      const outcome = await attempt(request);
      const forced = outcome.kind === 'switched' && !outcome.preflight.ok;
      await record(request, forced ? 'forced' : outcome.kind, outcome);
      return outcome;
    } catch (thrown) {
      await record(request, 'failed', { why: asGatewayError(thrown).message });
      throw thrown;
    }
  };

  async function attempt({ environment, confirm, force }: SwitchRequest): Promise<SwitchOutcome> {
    if (!isConfirmed(environment, confirm)) {
      return { kind: 'refused', why: `switching to ${environment} must be confirmed by its name` };
    }
    const report = await preflight(environment);
    if (!report) return { kind: 'refused', why: 'unknown environment' };
    if (!report.ok && !force) return { kind: 'refused', why: 'the pre-flight failed', preflight: report };
    const { from, to } = await active.switchTo(environment);
    return { kind: 'switched', from: from.environment, version: to.version, preflight: report };
  }

  async function record(request: SwitchRequest, outcome: string, more: object): Promise<void> {
    const { who, environment, reason, force } = request;
    const details = { environment, reason, force, ...more };
    await audit.record({ who, action: 'switch environment', outcome, details });
  }
}
