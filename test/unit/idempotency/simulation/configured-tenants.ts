/** The tenants in the configuration file of a simulated deployment, and the part of an instance that follows it. */

import {
  createConfiguredIdentities,
  IdentityContradiction,
} from '../../../../src/identities/configured-identities.ts';
import { identifyTenant } from '../../../../src/identities/identify-tenant.ts';
import { createIdentitiesStore } from '../../../../src/identities/identities-store.ts';
import type { IdentitySettings } from '../../../../src/identities/identity-settings.ts';
import type { PisRequest } from '../../../../src/request/messages.ts';
import type { Stage } from '../../../../src/request/stage.ts';
import type { State } from '../../../../src/state/ports.ts';

/** What the configuration says about tenants at one time. */
export interface TenantConfiguration {
  readonly settings: IdentitySettings;
  /** The configured name of a TPP's tenant. */
  nameOf(tpp: string): string;
}

/** Each TPP is the only client of its tenant. Its own name is the first name of the tenant. */
export interface ConfigurationFile {
  current(): TenantConfiguration;
  /** Gives a tenant another name, and declares the present one with `formerly`. */
  rename(tpp: string): void;
  /** An instance uses the configuration: the former names are recorded, and the next change leaves them out. */
  onUsed(configuration: TenantConfiguration): void;
  /** Declares all former names, because the state has lost the record of them. */
  declareAll(): void;
}

interface ConfiguredTenant {
  readonly tpp: string;
  readonly name: string;
  readonly formerly: readonly string[];
  /** All former names. */
  readonly names: readonly string[];
}

const environments = [{ name: 'sandbox', bank: 'http://127.0.0.1:9', isShared: false, movedFrom: [] }];

export function createConfigurationFile(tpps: readonly string[]): ConfigurationFile {
  let tenants: readonly ConfiguredTenant[] = tpps.map((tpp) => ({ tpp, name: tpp, formerly: [], names: [] }));
  let current = configurationOf(tenants);
  let isUsed = false;
  let renamings = 0;

  function change(next: readonly ConfiguredTenant[]): void {
    tenants = next;
    current = configurationOf(tenants);
    isUsed = false;
  }

  return {
    current: () => current,
    rename(renamed) {
      renamings += 1;
      const withoutRecorded = tenants.map((tenant) => (isUsed ? { ...tenant, formerly: [] } : tenant));
      change(
        withoutRecorded.map((tenant) => {
          const { tpp, name, formerly, names } = tenant;
          if (tpp !== renamed) return tenant;
          const next = `${tpp}-${renamings}`;
          return { tpp, name: next, formerly: [...formerly, name], names: [...names, name] };
        }),
      );
    },
    onUsed(configuration) {
      if (configuration === current) isUsed = true;
    },
    declareAll: () => change(tenants.map((tenant) => ({ ...tenant, formerly: tenant.names }))),
  };
}

function configurationOf(tenants: readonly ConfiguredTenant[]): TenantConfiguration {
  return {
    settings: {
      tenants: tenants.map(({ tpp, name, formerly }) => {
        return { name, formerly, credentials: [{ id: `key of ${tpp}`, kind: 'API key', client: tpp }] };
      }),
      retired: [],
      environments,
    },
    nameOf: (tpp) => tenants.find((tenant) => tenant.tpp === tpp)?.name ?? tpp,
  };
}

/** The configured tenants of one instance. */
export interface InstanceTenants {
  /** Finds the identity of the tenant, as stage 2 of the pipeline. */
  readonly identify: Stage<PisRequest>;
  nameOf(tpp: string): string;
  /**
   * Uses the present configuration file; keeps the former configuration if the state does not answer. Has no effect while
   * another call is running.
   */
  reload(): Promise<void>;
  /** To be called every second. Never rejects. */
  refresh(): Promise<void>;
}

/** Starts with the present configuration file. @param onRefused called if the identities refuse the configuration */
export function createInstanceTenants(
  state: State,
  file: ConfigurationFile,
  onRefused: (error: IdentityContradiction) => void,
): InstanceTenants {
  const store = createIdentitiesStore(state);
  let configuration = file.current();
  let identities = create(configuration);
  let isReloading = false;

  function create({ settings }: TenantConfiguration) {
    return createConfiguredIdentities(store, settings, () => {});
  }

  /** @returns whether the identities have accepted the configuration */
  async function establish(next: typeof identities, from: TenantConfiguration): Promise<boolean> {
    try {
      await next.establish();
      file.onUsed(from);
      return true;
    } catch (thrown) {
      if (thrown instanceof IdentityContradiction) onRefused(thrown);
      return false;
    }
  }

  void establish(identities, configuration);

  return {
    identify: (request, next) =>
      identifyTenant({ identities, ifStateFails: 'refuse', log: () => {} })(request, next),
    nameOf: (tpp) => configuration.nameOf(tpp),
    async reload() {
      if (isReloading) return;
      isReloading = true;
      const from = file.current();
      const next = create(from);
      if (await establish(next, from)) {
        identities = next;
        configuration = from;
      }
      isReloading = false;
    },
    refresh: () => identities.refresh(),
  };
}
