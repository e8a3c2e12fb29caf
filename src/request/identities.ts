/**
 * The ids of tenants and environments: what stored rows contain in place of the configured names. The id is the first name that a tenant
 * or an environment had; it keeps it when it is renamed.
 */

/** The ids that one configuration uses, at one revision. A request keeps the same object until it ends. */
export interface Identities {
  /** A write is sent only if it is still the one in the database. */
  readonly revision: number;
  /** The clients that work for other tenants since the configuration was loaded. */
  readonly movedClients: ReadonlySet<string>;
  /**
   * Reads the database again.
   *
   * @returns this object if nothing has changed
   * @throws GatewayError STATE_UNAVAILABLE if the configuration contradicts it now, or it is unavailable
   */
  renew(): Promise<Identities>;
  tenantIdOf(name: string): string;
  environmentIdOf(name: string): string;
  /** The configured environment with this id; `undefined` if it was removed. */
  environmentWith(id: string): string | undefined;
  /** The configured environment that has, or has had, this name: an active environment may have been renamed since. */
  environmentNamed(name: string): string | undefined;
  /** Every id in the database, also of tenants and environments that were removed. */
  readonly tenantIds: readonly string[];
  readonly environmentIds: readonly string[];
  /** For people: the configured name, or the newest one. */
  tenantNameOf(id: string): string;
  environmentNameOf(id: string): string;
  /** Whether the database may have payments of tenants that are not configured. */
  readonly hasOtherTenants: boolean;
  readonly hasOtherEnvironments: boolean;
  /**
   * To be called before a write is sent to an environment: records its address, so that no configuration gives it another one unnoticed.
   *
   * @returns `undefined` if it is recorded already
   * @throws GatewayError STATE_UNAVAILABLE if the database is unavailable, or has another address
   */
  fixAddress(environment: string): Promise<void> | undefined;
  /**
   * To be called before any request for an existing payment: another instance may have recorded another address.
   *
   * @returns and throws as `fixAddress`
   */
  checkAddress(environment: string): Promise<void> | undefined;
}

const itself = (name: string) => name;

/** Every name is taken for the id. */
export const namesAsIdentities: Identities = {
  revision: 0,
  movedClients: new Set(),
  renew: async () => namesAsIdentities,
  tenantIdOf: itself,
  environmentIdOf: itself,
  environmentWith: itself,
  environmentNamed: itself,
  tenantIds: [],
  environmentIds: [],
  tenantNameOf: itself,
  environmentNameOf: itself,
  hasOtherTenants: false,
  hasOtherEnvironments: false,
  fixAddress: () => undefined,
  checkAddress: () => undefined,
};

export const identitiesOf = ({ identities }: { readonly identities?: Identities | undefined }): Identities =>
  identities ?? namesAsIdentities;

/** Behind the name of a tenant in records of requests whose id was not known; neither names nor ids end with it. */
export const unidentifiedSuffix = '#?';

/**
 * The tenant in the record of a request: its id. While that is not known, a text that is no id: a name alone may be that of another
 * tenant's records.
 */
export const recordedTenantOf = (tenant: string, identities: Identities | undefined): string =>
  identities ? identities.tenantIdOf(tenant) : `${tenant}${unidentifiedSuffix}`;

/** The id of the caller's tenant. */
export const currentTenantId = (request: {
  readonly identities?: Identities | undefined;
  readonly client: { readonly tenant: string };
}): string => identitiesOf(request).tenantIdOf(request.client.tenant);
