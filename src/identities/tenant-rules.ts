/**
 * Which recorded tenant each configured tenant is, as a pure function of the record and the settings.
 *
 * Two tenants of one configuration are never the same recorded tenant, and a key or certificate never changes the tenant
 * unless the configuration says so: both would show one tenant the payments of another.
 */

import { anonymousTenant, type TenantRecord } from './identities-record.ts';
import type { IdentitySettings, TenantIdentitySettings } from './identity-settings.ts';

export interface TenantRulesResult {
  readonly tenants: TenantRecord[];
  /** What to write instead, as sentences; the settings are refused unless it is empty. */
  readonly contradictions: readonly string[];
}

/**
 * The order matters: a name that is retired is free for others, and a current name precedes a former one.
 *
 * @param recorded         not changed
 * @param recordsAnonymous whether the tenant `anonymous` is recorded, because it sends a write
 */
export function applyTenantSettings(
  recorded: readonly TenantRecord[],
  settings: Pick<IdentitySettings, 'tenants' | 'retired'>,
  recordsAnonymous: boolean,
): TenantRulesResult {
  const tenants = structuredClone([...recorded]);
  const contradictions: string[] = [];
  /** The record of each configured tenant, as far as it is found. */
  const matches = new Map<TenantIdentitySettings, TenantRecord>();
  const isMatched = (tenant: TenantRecord) => [...matches.values()].includes(tenant);
  const unmatched = () => settings.tenants.filter((configured) => !matches.has(configured));
  const live = () => tenants.filter(({ retired }) => !retired);
  const inUse = (name: string) => live().find(({ names }) => names[0] === name);

  retireTenants();
  matchCurrentNames();
  matchFormerNames();
  for (const configured of settings.tenants) {
    const isNew = !matches.has(configured);
    for (const name of configured.formerly) continueFormer(configured, name, isNew);
  }
  addNewTenants();
  for (const [{ name }, tenant] of matches)
    tenant.names = [name, ...tenant.names.filter((other) => other !== name)];
  for (const configured of settings.tenants) recordCredentials(configured);
  refuseUnclaimedAnonymous();

  return { tenants, contradictions: [...new Set(contradictions)] };

  function retireTenants(): void {
    for (const name of settings.retired) {
      const tenant = inUse(name);
      if (tenant) tenant.retired = true;
    }
  }

  function matchCurrentNames(): void {
    for (const configured of settings.tenants) {
      const tenant = inUse(configured.name);
      if (tenant) matches.set(configured, tenant);
    }
  }

  function matchFormerNames(): void {
    for (const configured of unmatched()) {
      const tenant = live().find((one) => !isMatched(one) && usesFormerName(one, configured));
      if (tenant) matches.set(configured, tenant);
    }
  }

  /**
   * Renames or merges the tenant that had this name, unless an earlier configuration has already done so: otherwise an old
   * configuration would merge a later tenant of that name.
   */
  function continueFormer(configured: TenantIdentitySettings, name: string, isNew: boolean): void {
    const tenant = matches.get(configured);
    if (tenant?.names.includes(name) && !isNew) return;
    const former = inUse(name) ?? live().find(({ names }) => names.includes(name));
    if (former && former === tenant) return;
    if (former && isMatched(former)) {
      contradictions.push(
        `tenants.${configured.name}.formerly names "${name}", but tenant "${former.names[0]}" already continues it; remove the name from one of the two`,
      );
      return;
    }
    // An earlier release may have recorded payments under a name that this record lacks.
    const continued = former ?? (isIdInUse(name) ? undefined : addTenant(name, name));
    if (!tenant) {
      if (continued) matches.set(configured, continued);
      return;
    }
    if (!continued) return;
    tenant.ids = [...tenant.ids, ...continued.ids];
    tenant.names = [...tenant.names, ...continued.names.filter((other) => !tenant.names.includes(other))];
    tenant.credentials = [...new Set([...tenant.credentials, ...continued.credentials])];
    tenants.splice(tenants.indexOf(continued), 1);
  }

  function addNewTenants(): void {
    for (const configured of unmatched()) {
      const { name, credentials } = configured;
      if (name === anonymousTenant && credentials.length === 0 && !recordsAnonymous) continue;
      matches.set(configured, addTenant(name, freeId(name)));
    }
  }

  function recordCredentials(configured: TenantIdentitySettings): void {
    const own = matches.get(configured);
    if (!own) return;
    for (const { id, kind, client } of configured.credentials) {
      const other = live().find((tenant) => tenant !== own && tenant.credentials.includes(id));
      if (!other) own.credentials = [...new Set([...own.credentials, id])];
      else contradictions.push(movedCredential(configured.name, `the ${kind} of client "${client}"`, other));
    }
  }

  function movedCredential(name: string, credential: string, other: TenantRecord): string {
    const [otherName] = other.names;
    const isConfigured = settings.tenants.some((one) => one.name === otherName);
    const fact = `${credential} is recorded for tenant "${otherName}", and the configuration gives it to tenant "${name}"`;
    if (isConfigured) return `${fact}; give the client another one, or set its tenant to ${otherName}`;
    return (
      `${fact}; if this is the same tenant under another name, set tenants: { ${name}: { formerly: [${otherName}] } }; ` +
      `if "${otherName}" has ended, set tenants: { retired: [${otherName}] }`
    );
  }

  function refuseUnclaimedAnonymous(): void {
    const anonymous = inUse(anonymousTenant);
    if (!anonymous || isMatched(anonymous)) return;
    contradictions.push(
      `payments were made as tenant "${anonymousTenant}" before clients were configured; if one tenant made them, set ` +
        `tenants: { NAME: { formerly: [${anonymousTenant}] } }; if nobody may use them any more, set tenants: { retired: [${anonymousTenant}] }`,
    );
  }

  function addTenant(name: string, id: string): TenantRecord {
    const tenant: TenantRecord = { ids: [id], names: [name], credentials: [] };
    tenants.push(tenant);
    return tenant;
  }

  function isIdInUse(id: string): boolean {
    return tenants.some(({ ids }) => ids.includes(id));
  }

  /** The name itself, so that the records of earlier releases are found; no configured name contains `#`. */
  function freeId(name: string, count = 1): string {
    const id = count === 1 ? name : `${name}#${count}`;
    return isIdInUse(id) ? freeId(name, count + 1) : id;
  }
}

/**
 * Whether the configuration is older than the record, and the tenant is still configured under a former name. A name alone
 * proves nothing, because a new tenant may use it.
 */
const usesFormerName = (
  { names, credentials }: TenantRecord,
  { name, credentials: configured }: TenantIdentitySettings,
) =>
  names.includes(name) && (name === anonymousTenant || configured.some(({ id }) => credentials.includes(id)));
