/** The identities of one configuration: recorded when it starts to be used, and read again while it is in use. */

import { UnusableConfigError } from '../config/config-errors.ts';
import { asGatewayError, GatewayError } from '../request/errors.ts';
import type { Identities } from '../request/identities.ts';
import type { Log } from '../telemetry/log.ts';
import { applyEnvironmentSettings, continuedBankWarnings, movedBankWarnings } from './environment-rules.ts';
import { anonymousTenant, type EnvironmentRecord, type IdentitiesRecord } from './identities-record.ts';
import type { IdentitiesStore } from './identities-store.ts';
import type { IdentitySettings } from './identity-settings.ts';
import { resolveIdentities } from './resolve-identities.ts';
import { applyTenantSettings } from './tenant-rules.ts';

export interface ConfiguredIdentities {
  /** The identities for a new request; `undefined` until the state was read. */
  current(): Identities | undefined;
  /** The identities for a write of this tenant; `undefined` if the tenant must be recorded first. */
  ofWriter(tenant: string): Identities | undefined;
  /**
   * Records the tenants and environments of the configuration, and resolves their identities.
   *
   * @throws IdentityContradiction if they contradict the record; GatewayError STATE_UNAVAILABLE
   */
  establish(): Promise<Identities>;
  /** Records that this tenant sends a write. @throws as `establish` */
  recordWriter(tenant: string): Promise<Identities>;
  /** Reads what other instances have changed, or calls `establish` if that has failed before. Never rejects. */
  refresh(): Promise<void>;
  /** Why requests are refused, as a sentence for operators; `undefined` if they are not. */
  problem(): string | undefined;
}

/** The configuration contradicts the record. The message says what to write instead. */
export class IdentityContradiction extends UnusableConfigError {}

export function createConfiguredIdentities(
  store: IdentitiesStore,
  settings: IdentitySettings,
  log: Log,
): ConfiguredIdentities {
  let resolved: Identities | undefined;
  let resolvedFrom: IdentitiesRecord | undefined;
  let contradiction: string | undefined;
  /** Why the record could not be read or written at the last attempt. */
  let failure: string | undefined;
  let establishing: Promise<Identities> | undefined;
  /** Set by the first write; the record is written again until it contains the tenant. */
  let recordsAnonymous = false;
  let isAnonymousRecorded = false;

  function current(): Identities | undefined {
    const record = store.known();
    if (resolved && record && record !== resolvedFrom) adopt(record);
    return resolved;
  }

  function adopt(record: IdentitiesRecord): Identities {
    resolved = resolveIdentities(record, settings, resolved);
    resolvedFrom = record;
    return resolved;
  }

  /** Requests that need it at the same time share one attempt. */
  function establish(): Promise<Identities> {
    establishing ??= record().finally(() => {
      establishing = undefined;
    });
    return establishing;
  }

  async function record(): Promise<Identities> {
    try {
      let before: readonly EnvironmentRecord[] = [];
      const updated = await store.update((record) => {
        before = record.environments;
        return withSettings(record);
      });
      if (!resolved)
        for (const warning of [
          ...continuedBankWarnings(before, settings.environments),
          ...movedBankWarnings(updated.environments, settings.environments),
        ])
          log('warn', warning);
      contradiction = undefined;
      failure = undefined;
      return adopt(updated);
    } catch (thrown) {
      if (thrown instanceof IdentityContradiction) {
        contradiction = thrown.message;
        throw thrown;
      }
      const error = asGatewayError(thrown);
      failure = error.message;
      throw error;
    }
  }

  function withSettings(before: IdentitiesRecord): IdentitiesRecord {
    // An earlier release did not record that it had no clients: it may have made payments as this tenant.
    const isAnonymousKnown = recordsAnonymous || before.earlierRelease;
    const { tenants, contradictions } = applyTenantSettings(before.tenants, settings, isAnonymousKnown);
    if (contradictions.length > 0) throw new IdentityContradiction(contradictions.join('. '));
    const environments = applyEnvironmentSettings(before.environments, settings.environments);
    const after = { ...before, tenants, environments };
    return JSON.stringify(after) === JSON.stringify(before) ? before : after;
  }

  return {
    current,
    ofWriter: (tenant) => (tenant !== anonymousTenant || isAnonymousRecorded ? current() : undefined),
    establish,
    async recordWriter(tenant) {
      await establishing?.catch(() => {}); // an attempt that is under way may not contain this tenant
      recordsAnonymous = tenant === anonymousTenant;
      const established = await establish();
      isAnonymousRecorded = recordsAnonymous;
      return established;
    },
    async refresh() {
      if (resolved) return store.refresh().catch(() => {}); // the next refresh tries again
      const before = contradiction;
      await establish().catch(() => {}); // reported by `problem`
      if (contradiction === undefined || contradiction === before) return;
      const message =
        'the configuration contradicts the tenants recorded in the shared state; all requests are refused';
      log('error', message, { why: contradiction });
    },
    problem() {
      if (contradiction !== undefined)
        return `the configuration contradicts the tenants recorded in the shared state: ${contradiction}`;
      return resolved
        ? undefined
        : failure && `the tenants recorded in the shared state cannot be read: ${failure}`;
    },
  };
}

/** For a request that cannot continue without identities. The TPP must not see the names of other tenants. */
export function identitiesUnavailable(thrown: unknown): GatewayError {
  if (!(thrown instanceof IdentityContradiction)) return asGatewayError(thrown);
  const text =
    'The tenants configured on this instance contradict those recorded in the shared state; nothing was sent. Contact the operators of the gateway.';
  return new GatewayError('STATE_UNAVAILABLE', text, { cause: thrown });
}
