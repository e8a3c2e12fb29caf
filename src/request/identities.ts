/**
 * The identities of tenants and environments: what stored records contain in place of the configured names.
 *
 * A name can change, and can be given to another tenant or bank; an identity never changes.
 */

/** The identities that one configuration uses. A request keeps the same object until it ends. */
export interface Identities {
  /**
   * Every identity of a configured tenant. New records use the first one; the others are those of tenants that were merged
   * into it.
   */
  tenantIdsOf(name: string): readonly string[];
  /** The identity of the bank that a configured environment calls, for new records. */
  environmentIdOf(name: string): string;
  /** The configured environment that calls the bank with this identity; `undefined` if none does. */
  environmentWith(id: string): string | undefined;
  /** Every recorded identity, of former tenants and environments as well. */
  readonly tenantIds: readonly string[];
  readonly environmentIds: readonly string[];
  /** For people: the name of an environment or a tenant, also of one that is not configured any more. */
  environmentNameOf(id: string): string;
  tenantNameOf(id: string): string;
  /**
   * Whether the state may hold payments of other tenants than the configured ones: one that was removed or retired, or
   * any at all if an earlier release, which recorded no identities, used this state.
   */
  readonly otherTenants: 'none' | 'unknown' | 'recorded';
  /** Whether the state may hold payments of other environments or banks than the configured ones. */
  readonly hasOtherEnvironments: boolean;
}

const itself = (name: string) => name;

/** Every name is taken for the identity. */
export const namesAsIdentities: Identities = {
  tenantIdsOf: (name) => [name],
  environmentIdOf: itself,
  environmentWith: itself,
  tenantIds: [],
  environmentIds: [],
  environmentNameOf: itself,
  tenantNameOf: itself,
  otherTenants: 'none',
  hasOtherEnvironments: false,
};

export const identitiesOf = ({ identities }: { readonly identities?: Identities | undefined }): Identities =>
  identities ?? namesAsIdentities;

/** Behind the name of a tenant in records of requests whose identity was not known; neither names nor identities end with it. */
export const unidentifiedSuffix = '#?';

/**
 * The tenant in the record of a request: its identity. While that is not known, a text that is no identity: a name alone may be
 * that of another tenant's records.
 */
export function recordedTenantOf(tenant: string, identities: Identities | undefined): string {
  return identities ? (identities.tenantIdsOf(tenant)[0] ?? tenant) : `${tenant}${unidentifiedSuffix}`;
}

/** The identity of the caller's tenant for new records. */
export function currentTenantId(request: {
  readonly identities?: Identities | undefined;
  readonly client: { readonly tenant: string };
}): string {
  const { tenant } = request.client;
  return identitiesOf(request).tenantIdsOf(tenant)[0] ?? tenant;
}
