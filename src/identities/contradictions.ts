/** What a configuration says of tenants and environments, and where the database says otherwise. */

import type { Config } from '../config/schema.ts';
import type { NewIdentities, StoredIdentities, StoredName, StoredNames } from '../store/identities.ts';

/** The tenant of all requests if no clients are configured. */
export const anonymousTenant = 'anonymous';

/** The part of a configuration that names tenants and environments. */
export interface IdentitySettings {
  /** The tenants of the clients; without clients, the tenant `anonymous`. */
  readonly tenants: readonly string[];
  readonly credentials: readonly {
    /** The SHA-256, as in the configuration. */
    readonly hash: string;
    readonly kind: 'API key' | 'certificate';
    readonly client: string;
    readonly tenant: string;
  }[];
  readonly environments: readonly {
    readonly name: string;
    /** Origin and base path: `https://hub.example/psd2`. */
    readonly address: string;
  }[];
}

export function identitySettingsOf({
  clients,
  environments,
}: Pick<Config, 'clients' | 'environments'>): IdentitySettings {
  return {
    tenants: clients.length === 0 ? [anonymousTenant] : [...new Set(clients.map(({ tenant }) => tenant))],
    credentials: clients.flatMap(credentialsOf),
    environments: environments.all.map(({ name, origin, basePath }) => ({
      name,
      address: origin + basePath,
    })),
  };
}

/** Those of a client. */
export function credentialsOf({
  name: client,
  tenant,
  apiKeySha256,
  certificateSha256,
}: Config['clients'][number]): IdentitySettings['credentials'] {
  return [
    ...(apiKeySha256 === undefined ? [] : [{ hash: apiKeySha256, kind: 'API key' as const, client, tenant }]),
    ...(certificateSha256 === undefined
      ? []
      : [{ hash: certificateSha256, kind: 'certificate' as const, client, tenant }]),
  ];
}

/** The id that a name has, or will have: a new name is one. */
export const idIn = (names: readonly StoredName[], name: string): string =>
  names.find((known) => known.name === name)?.id ?? name;

/** The newest name of an id. */
export const newestName = (names: readonly StoredName[], id: string): string =>
  names.findLast((known) => known.id === id)?.name ?? id;

/** The names of the configuration that are not in the database. */
function missingNames({ tenants, environments }: StoredNames, settings: IdentitySettings) {
  const isNew = (names: readonly StoredName[]) => (name: string) =>
    names.every((known) => known.name !== name);
  return {
    tenants: settings.tenants.filter(isNew(tenants)),
    environments: settings.environments.map(({ name }) => name).filter(isNew(environments)),
  };
}

/** Whether each configured tenant and environment is in the database. */
export const hasNamesOf = (stored: StoredNames, settings: IdentitySettings): boolean =>
  Object.values(missingNames(stored, settings)).every((missing) => missing.length === 0);

/** The names and credentials of the configuration that are not in the database. */
export function missingIn(stored: StoredIdentities, settings: IdentitySettings): NewIdentities {
  const credentials = new Map(settings.credentials.map(({ hash, tenant }) => [hash, tenant]));
  return {
    ...missingNames(stored, settings),
    credentials: [...credentials]
      .filter(([hash]) => !stored.credentials.has(hash))
      .map(([hash, tenant]) => ({ hash, tenant: idIn(stored.tenants, tenant) })),
  };
}

/**
 * Whether requests without clients, which are those of the tenant `anonymous`, could not be requests of other tenants: every known credential
 * belongs to it.
 */
function isSafeWithoutClients({ tenants, credentials }: StoredIdentities): boolean {
  const anonymous = idIn(tenants, anonymousTenant);
  return [...credentials.values()].every((tenant) => tenant === anonymous);
}

/** The clients whose credentials belong to other tenants than the configuration says. */
export const movedClientsIn = (
  stored: StoredIdentities,
  { credentials }: IdentitySettings,
): ReadonlySet<string> =>
  new Set(
    credentials
      .filter((one) => ownerOtherThanConfigured(stored, one) !== undefined)
      .map(({ client }) => client),
  );

/** Whether the tenant `anonymous` is known, and neither configured, nor renamed, nor that of a client: then it must have no payments. */
export function isAnonymousUnclaimed(
  { tenants, credentials }: StoredIdentities,
  settings: IdentitySettings,
): boolean {
  if ([...credentials.values()].includes(anonymousTenant)) return false;
  const names = tenants.filter(({ id }) => id === anonymousTenant);
  return names.length === 1 && !settings.tenants.includes(anonymousTenant);
}

/**
 * All contradictions, each with the command that resolves it.
 *
 * @param hasUnclaimedPayments whether there are payments of an unclaimed tenant `anonymous`
 */
export function contradictionsIn(
  stored: StoredIdentities,
  settings: IdentitySettings,
  hasUnclaimedPayments: boolean,
): readonly string[] {
  return [
    ...movedCredentials(stored, settings),
    ...[clientsMissing(stored, settings)].filter((problem) => problem !== undefined),
    ...(hasUnclaimedPayments ? [unclaimed] : []),
    ...movedEnvironments(stored, settings),
    ...sharedIds(stored.tenants, settings.tenants, 'clients', 'tenant'),
    ...sharedIds(
      stored.environments,
      settings.environments.map(({ name }) => name),
      'environments',
      'environment',
    ),
  ];
}

const movedCredentials = (stored: StoredIdentities, { credentials }: IdentitySettings) =>
  credentials.flatMap((credential) => {
    const owner = ownerOtherThanConfigured(stored, credential);
    if (owner === undefined) return [];
    const { kind, client, tenant } = credential;
    const former = newestName(stored.tenants, owner);
    return [
      `clients: the ${kind} of client "${client}" belongs to tenant "${former}", and the configuration gives it to tenant "${tenant}"; ` +
        `if it is the same tenant under a new name, use: penstock tenants rename ${former} ${tenant}; ` +
        `if the client works for another tenant from now on, use: penstock tenants move-credential ${client} ${tenant}`,
    ];
  });

function ownerOtherThanConfigured(
  { tenants, credentials }: StoredIdentities,
  { hash, tenant }: IdentitySettings['credentials'][number],
): string | undefined {
  const owner = credentials.get(hash);
  return owner === idIn(tenants, tenant) ? undefined : owner;
}

/** Also found while an instance runs: another one may have got the first clients. */
export function clientsMissing(
  stored: StoredIdentities,
  { credentials }: IdentitySettings,
): string | undefined {
  if (credentials.length > 0 || isSafeWithoutClients(stored)) return undefined;
  return (
    `clients: none are configured, and the database knows clients: without clients, their requests would be those of the tenant "${anonymousTenant}", ` +
    `and repeats would be paid again; configure the clients${adviceForOneTenant(stored)}`
  );
}

function adviceForOneTenant({ tenants, credentials }: StoredIdentities): string {
  const [owner, ...others] = new Set(credentials.values());
  if (owner === undefined || others.length > 0 || tenants.some(({ name }) => name === anonymousTenant))
    return '';
  return `, or continue the payments of their tenant without clients: penstock tenants rename ${newestName(tenants, owner)} ${anonymousTenant}`;
}

const unclaimed =
  `clients: payments were made without clients, as tenant "${anonymousTenant}"; give them to the tenant that made them: ` +
  `penstock tenants rename ${anonymousTenant} NEW`;

const movedEnvironments = (stored: StoredIdentities, { environments }: IdentitySettings) =>
  environments.flatMap(({ name, address }) => {
    const recorded = stored.addresses.get(idIn(stored.environments, name));
    if (recorded === undefined || recorded === address) return [];
    return [
      `environments.${name}.baseUrl: payments were sent to ${recorded}, and the configuration says ${address}; ` +
        `if it is the same bank at a new address, use: penstock environment moved ${name} --to ${address}; ` +
        'otherwise give the other bank another name',
    ];
  });

/** After a rename, a configuration uses one of the names: with both, it would mean two. */
const sharedIds = (stored: readonly StoredName[], names: readonly string[], path: string, what: string) =>
  [...Map.groupBy(names, (name) => idIn(stored, name)).values()]
    .filter((same) => same.length > 1)
    .map(
      (same) =>
        `${path}: ${same.map((name) => `"${name}"`).join(' and ')} are names of one ${what}, which was renamed; use one of them, ` +
        `and another name for another ${what}`,
    );
