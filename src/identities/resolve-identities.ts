/** The identities of one configuration, looked up in the record. */

import type { Identities } from '../request/identities.ts';
import { findEnvironment } from './environment-rules.ts';
import type { EnvironmentRecord, IdentitiesRecord, TenantRecord } from './identities-record.ts';
import type { IdentitySettings } from './identity-settings.ts';

/**
 * @param record   contains everything in the settings, except a tenant `anonymous` that has not sent a write
 * @param previous the result for an earlier record: its identities stay in use, whatever other instances changed since
 */
export function resolveIdentities(
  record: IdentitiesRecord,
  settings: IdentitySettings,
  previous?: Identities,
): Identities {
  const tenantIds = new Map<string, readonly string[]>();
  const tenants = settings.tenants.map(({ name }) => {
    const before = previous?.tenantIdsOf(name) ?? [];
    const tenant = findTenant(record.tenants, name, before[0]);
    tenantIds.set(name, union(tenant?.ids ?? (before.length > 0 ? [] : [name]), before));
    return tenant;
  });

  const environmentIds = new Map<string, readonly string[]>();
  const environments = settings.environments.map((configured) => {
    const environment = findEnvironment(record.environments, configured);
    const before = previous ? [previous.environmentIdOf(configured.name)] : [];
    environmentIds.set(configured.name, union(environment?.ids ?? [], before));
    return environment;
  });
  const nameOfEnvironment = invert(environmentIds);
  const nameOfTenant = invert(tenantIds);

  return {
    tenantIdsOf: (name) => tenantIds.get(name) ?? [name],
    environmentIdOf: (name) => environmentIds.get(name)?.[0] ?? name,
    environmentWith: (id) => nameOfEnvironment.get(id),
    tenantIds: union([...nameOfTenant.keys()], idsIn(record.tenants)),
    environmentIds: union([...nameOfEnvironment.keys()], idsIn(record.environments)),
    environmentNameOf: (id) => nameOfEnvironment.get(id) ?? nameIn(record.environments, id),
    tenantNameOf: (id) => nameOfTenant.get(id) ?? nameIn(record.tenants, id),
    otherTenants: otherTenantsIn(record, tenants),
    hasOtherEnvironments:
      record.earlierRelease || record.environments.some((environment) => !environments.includes(environment)),
  };
}

function otherTenantsIn(
  { tenants, earlierRelease }: IdentitiesRecord,
  configured: readonly (TenantRecord | undefined)[],
): Identities['otherTenants'] {
  if (tenants.some((tenant) => !configured.includes(tenant))) return 'recorded';
  return earlierRelease ? 'unknown' : 'none';
}

/** By the identity in use, because another instance may have renamed, merged or retired the tenant; otherwise by name. */
const findTenant = (tenants: readonly TenantRecord[], name: string, id: string | undefined) =>
  (id === undefined ? undefined : tenants.find(({ ids }) => ids.includes(id))) ??
  tenants.find(({ names, retired }) => names[0] === name && !retired);

const union = (one: readonly string[], other: readonly string[]) => [...new Set([...one, ...other])];

const invert = (ids: ReadonlyMap<string, readonly string[]>): ReadonlyMap<string, string> =>
  new Map([...ids].flatMap(([name, own]) => own.map((id) => [id, name] as const)));

const idsIn = (records: readonly (TenantRecord | EnvironmentRecord)[]) => records.flatMap(({ ids }) => ids);

function nameIn(records: readonly (TenantRecord | EnvironmentRecord)[], id: string): string {
  const found = records.find(({ ids }) => ids.includes(id));
  if (!found) return id;
  return 'names' in found ? (found.names[0] ?? id) : found.name;
}
