/** The ids of the tenants and environments of one configuration: compared with the database before the configuration is used. */

import { UnusableConfigError } from '../config/config-errors.ts';
import { asGatewayError, GatewayError } from '../request/errors.ts';
import type { Identities } from '../request/identities.ts';
import { collect } from '../store/collect.ts';
import type { IdentityTable, StoredIdentities, StoredName, StoredNames } from '../store/identities.ts';
import type { Log } from '../telemetry/log.ts';
import {
  anonymousTenant,
  clientsMissing,
  contradictionsIn,
  hasNamesOf,
  type IdentitySettings,
  idIn,
  isAnonymousUnclaimed,
  missingIn,
  movedClientsIn,
  newestName,
} from './contradictions.ts';
import type { KnownNames } from './known-names.ts';

export type ConfiguredIdentities = ReturnType<typeof createConfiguredIdentities>;

/** The configuration contradicts the database. The message names the commands that resolve it. */
export class IdentityContradiction extends UnusableConfigError {}

/** How often the names are read again because another instance has inserted some. */
const maxLooks = 10;

/** @param names of all instances, kept up to date by the one in use */
export function createConfiguredIdentities(
  table: IdentityTable,
  names: KnownNames,
  settings: IdentitySettings,
  log: Log,
) {
  let resolved: Identities | undefined;
  let resolvedFrom: StoredNames | undefined;
  let contradiction: string | undefined;
  let loggedContradiction: string | undefined;
  /** Why the database could not be read or written at the last attempt. */
  let failure: string | undefined;
  let establishing: Promise<Identities> | undefined;
  /** The environments whose address is recorded. */
  const fixed = new Set<string>();

  function current(): Identities | undefined {
    const known = names.known();
    if (resolved && known && known !== resolvedFrom && known.revision === resolved.revision) {
      if (hasNamesOf(known, settings)) adopt(known, resolved.movedClients);
      else resolved = undefined; // `establish` adds those that are missing
    }
    return resolved; // with an old revision, reads go on; the mark of a write fails, and renews it
  }

  function adopt(stored: StoredNames, movedClients: Identities['movedClients']): Identities {
    const ids = resolveIdentities(stored, settings);
    resolved = { ...ids, revision: stored.revision, movedClients, fixAddress, checkAddress, renew };
    resolvedFrom = stored;
    return resolved;
  }

  /** Requests that need it at the same time share one attempt. */
  function establish(): Promise<Identities> {
    establishing ??= compare().finally(() => {
      establishing = undefined;
    });
    return establishing;
  }

  async function compare(): Promise<Identities> {
    try {
      const adopted = await (resolved ? followChanges() : insertMissing(maxLooks));
      contradiction = undefined;
      failure = undefined;
      return adopted;
    } catch (thrown) {
      if (thrown instanceof IdentityContradiction) {
        const wasInUse = resolved !== undefined;
        contradiction = thrown.message;
        resolved = undefined;
        if (wasInUse) logContradiction();
        throw thrown;
      }
      const error = asGatewayError(thrown);
      failure = error.message;
      throw error;
    }
  }

  /** Once. */
  function logContradiction(): void {
    if (contradiction !== undefined && contradiction !== loggedContradiction)
      log('error', `${contradicts}; all requests are refused`, { why: contradiction });
    loggedContradiction = contradiction;
  }

  /** The names and their revision first: credentials may be newer, but never older. */
  async function read(): Promise<{ readonly known: StoredNames; readonly stored: StoredIdentities }> {
    const known = await names.refresh();
    const credentials = await table.readCredentials();
    return { known, stored: { ...known, credentials, addresses: await table.readAddresses() } };
  }

  /** Credentials have got other tenants. Their clients are refused until the configuration says so, too; all others go on. */
  async function followChanges(): Promise<Identities> {
    const { known, stored } = await read();
    if (!hasNamesOf(known, settings)) return insertMissing(maxLooks);
    const problem = clientsMissing(stored, settings);
    if (problem !== undefined) throw new IdentityContradiction(problem);
    const movedClients = movedClientsIn(stored, settings);
    if (movedClients.size > 0)
      log(
        'warn',
        'these clients work for other tenants now, and are refused until the configuration is reloaded',
        {
          clients: [...movedClients].join(', '),
        },
      );
    return adopt(known, movedClients);
  }

  /** Inserts until nothing is missing. Writes nothing if there is a contradiction. */
  async function insertMissing(looksLeft: number): Promise<Identities> {
    const { known, stored } = await read();
    const isUnclaimed = isAnonymousUnclaimed(stored, settings);
    const contradictions = contradictionsIn(
      stored,
      settings,
      isUnclaimed && (await table.hasPayments(anonymousTenant)),
    );
    if (contradictions.length > 0) throw new IdentityContradiction(contradictions.join('\n'));
    const missing = missingIn(stored, settings);
    if (Object.values(missing).some((added) => added.length > 0)) {
      if (looksLeft === 0)
        throw new GatewayError('STATE_UNAVAILABLE', 'Other instances add names. Try again.');
      await table.insert(missing);
      // Again, also if nothing failed: an instance with another configuration may have done the same.
      return insertMissing(looksLeft - 1);
    }
    // The unused tenant would count as another one. Instances without clients cannot send any more, and none of their payments was found.
    if (isUnclaimed) {
      await table.forgetTenant(anonymousTenant);
      return insertMissing(looksLeft - 1);
    }
    noteAddresses(stored, stored.addresses);
    return adopt(known, new Set());
  }

  /** Those that are recorded, and equal. */
  function noteAddresses({ environments }: StoredNames, addresses: StoredIdentities['addresses']): void {
    for (const { name, address } of settings.environments)
      if (addresses.get(idIn(environments, name)) === address) fixed.add(name);
  }

  /** What other instances have changed. If an address was moved, this instance uses the former one until it reloads. */
  async function readChanges(): Promise<void> {
    const known = await names.refresh();
    if (known.revision !== resolved?.revision) await establish();
    if (fixed.size < settings.environments.length) noteAddresses(known, await table.readAddresses());
  }

  /** Requests that need it in one turn of the event loop share a read. */
  const renewBatch = collect(async (requests: readonly undefined[]) => {
    const renewed = await renewNow();
    return requests.map(() => renewed);
  });
  const renew = () => renewBatch(undefined);

  async function renewNow(): Promise<Identities> {
    try {
      const { revision } = await names.refresh();
      const known = current();
      return known?.revision === revision ? known : await establish();
    } catch (thrown) {
      throw identitiesUnavailable(thrown);
    }
  }

  const fixAddress = (environment: string) =>
    fixed.has(environment) ? undefined : compareAddress(environment, table.fixAddress);

  const checkAddress = (environment: string) =>
    fixed.has(environment) ? undefined : compareAddress(environment, table.addressOf);

  /** @param recordedAddress by the id of the environment; may record the address of the configuration */
  async function compareAddress(
    name: string,
    recordedAddress: (id: string, address: string) => Promise<string | undefined>,
  ): Promise<void> {
    const configured = settings.environments.find((one) => one.name === name);
    if (!configured || !resolved) throw addressError(name);
    const recorded = await recordedAddress(resolved.environmentIdOf(name), configured.address);
    if (recorded === undefined) return;
    if (recorded !== configured.address) throw addressError(name);
    fixed.add(name);
  }

  return {
    /** The ids for a new request; `undefined` until the configuration has been compared with the database. */
    current,

    /**
     * Compares the configuration with the database, and adds its new names and credentials. Once that has succeeded, only follows a new
     * revision.
     *
     * @throws IdentityContradiction, and nothing is written; GatewayError STATE_UNAVAILABLE
     */
    establish,

    /** Reads what other instances have changed, or calls `establish` if that has failed before. Never rejects. */
    async refresh(): Promise<void> {
      await (resolved ? readChanges() : establish()).catch(() => {}); // reported by `problem`; the next refresh tries again
      logContradiction();
    },

    /** Why requests are refused, as a sentence for operators; `undefined` if they are not. */
    problem(): string | undefined {
      if (resolved) return undefined;
      if (contradiction !== undefined) return `${contradicts}: ${contradiction}`;
      return failure && `the tenants in the database cannot be read: ${failure}`;
    },
  };
}

const contradicts = 'the configuration contradicts the tenants and environments in the database';

/** For a request that cannot continue without identities. The TPP must not see the names of other tenants. */
export function identitiesUnavailable(thrown: unknown): GatewayError {
  if (!(thrown instanceof IdentityContradiction)) return asGatewayError(thrown);
  const text =
    'The configuration of this instance contradicts the database of the gateway; nothing was sent. Contact the operators of the gateway.';
  return new GatewayError('STATE_UNAVAILABLE', text, { cause: thrown });
}

function addressError(environment: string): GatewayError {
  const text =
    `Other instances send the payments of the environment ${environment} to another address than this one; nothing was sent. ` +
    'Contact the operators of the gateway.';
  return new GatewayError('STATE_UNAVAILABLE', text);
}

function resolveIdentities(
  { tenants, environments }: StoredNames,
  settings: IdentitySettings,
): Omit<Identities, 'revision' | 'movedClients' | 'renew' | 'fixAddress' | 'checkAddress'> {
  const tenantIds = idsOf(settings.tenants, tenants);
  const environmentIds = idsOf(
    settings.environments.map(({ name }) => name),
    environments,
  );
  const tenantNames = invert(tenantIds);
  const environmentNames = invert(environmentIds);
  const allTenants = new Set([...tenantNames.keys(), ...tenants.map(({ id }) => id)]);
  const allEnvironments = new Set([...environmentNames.keys(), ...environments.map(({ id }) => id)]);
  return {
    tenantIdOf: (name) => tenantIds.get(name) ?? name,
    environmentIdOf: (name) => environmentIds.get(name) ?? name,
    environmentWith: (id) => environmentNames.get(id),
    environmentNamed: (name) => environmentNames.get(idIn(environments, name)),
    tenantIds: [...allTenants],
    environmentIds: [...allEnvironments],
    tenantNameOf: (id) => tenantNames.get(id) ?? newestName(tenants, id),
    environmentNameOf: (id) => environmentNames.get(id) ?? newestName(environments, id),
    hasOtherTenants: allTenants.size > tenantNames.size,
    hasOtherEnvironments: allEnvironments.size > environmentNames.size,
  };
}

const idsOf = (names: readonly string[], stored: readonly StoredName[]): ReadonlyMap<string, string> =>
  new Map(names.map((name) => [name, idIn(stored, name)]));

const invert = (ids: ReadonlyMap<string, string>): ReadonlyMap<string, string> =>
  new Map(Array.from(ids, ([name, id]) => [id, name]));
