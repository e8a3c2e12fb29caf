/** Cross-checks of the section tenants, and of the earlier addresses of environments. */

import type { ConfigError } from './config-errors.ts';
import type { CrossCheck } from './cross-checks.ts';
import type { Config } from './schema.ts';

export const tenantCrossChecks: readonly CrossCheck[] = [
  unknownTenants,
  formerNamesInUse,
  formerNamesUsedTwice,
  retiredNamesInUse,
  earlierAddressesInUse,
];

/** Without clients, every caller belongs to the tenant "anonymous". */
const configuredTenants = ({ clients }: Config): readonly string[] =>
  clients.length === 0 ? ['anonymous'] : [...new Set(clients.map(({ tenant }) => tenant))];

function unknownTenants(config: Config): readonly ConfigError[] {
  const configured = configuredTenants(config);
  return config.tenants.all
    .filter(({ name }) => !configured.includes(name))
    .map(({ name }) => ({
      path: ['tenants', name],
      related: [['clients']],
      message: 'no client belongs to this tenant; correct the name, or remove the entry',
    }));
}

function formerNamesInUse(config: Config): readonly ConfigError[] {
  const configured = configuredTenants(config);
  return formerNames(config).flatMap(({ path, tenant, former }) => {
    if (!configured.includes(former)) return [];
    const isSwap = formerNames(config).some((other) => other.tenant === former && other.former === tenant);
    const message = isSwap
      ? `this tenant and ${tenant} cannot swap their names in one step; rename one of them to a third name first`
      : `a client still belongs to this tenant; give the client the tenant ${tenant}, or remove the name here`;
    return [{ path, related: [['clients']], message }];
  });
}

function formerNamesUsedTwice(config: Config): readonly ConfigError[] {
  const all = formerNames(config);
  return all.flatMap(({ path, former }, index) => {
    const first = all.findIndex((other) => other.former === former);
    if (first === index) return [];
    const message = `this name is also in tenants.${all[first]?.tenant}.formerly; only one tenant can own its payments`;
    return [{ path, related: [all[first]?.path ?? []], message }];
  });
}

function retiredNamesInUse(config: Config): readonly ConfigError[] {
  const configured = configuredTenants(config);
  const former = formerNames(config);
  return config.tenants.retired.flatMap((name, index) => {
    const path = ['tenants', 'retired', index];
    const continuedBy = former.find((other) => other.former === name);
    if (continuedBy) {
      const message = `this name is also in tenants.${continuedBy.tenant}.formerly; remove it from one of the two`;
      return [{ path, related: [continuedBy.path], message }];
    }
    if (!configured.includes(name)) return [];
    const message = 'a client still belongs to this tenant; remove the client, or remove the name here';
    return [{ path, related: [['clients']], message }];
  });
}

function earlierAddressesInUse({ environments: { all } }: Config): readonly ConfigError[] {
  return all.flatMap(({ name, origin, basePath, movedFrom }) =>
    movedFrom.flatMap((address, index) => {
      if (address === origin + basePath) return []; // several environments of a hub have it
      const other = all.find((one) => one.name !== name && one.origin + one.basePath === address);
      if (!other) return [];
      const message = `this is the baseUrl of environment ${other.name}; remove it here`;
      const related = [['environments', other.name, 'baseUrl']];
      return [{ path: ['environments', name, 'movedFrom', index], related, message }];
    }),
  );
}

const formerNames = ({ tenants }: Config) =>
  tenants.all.flatMap(({ name, formerly }) =>
    formerly.map((former, index) => ({
      tenant: name,
      former,
      path: ['tenants', name, 'formerly', index],
    })),
  );
