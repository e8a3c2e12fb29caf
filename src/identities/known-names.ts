/** The names of all tenants and environments in the database, for people: in place of the ids that stored rows contain. */

import { isDeepStrictEqual } from 'node:util';
import { unidentifiedSuffix } from '../request/identities.ts';
import type { IdentityTable, StoredNames } from '../store/identities.ts';
import type { Log, LogFields } from '../telemetry/log.ts';
import { idIn, newestName } from './contradictions.ts';

export type KnownNames = ReturnType<typeof createKnownNames>;

export function createKnownNames({ readNames }: Pick<IdentityTable, 'readNames'>) {
  let known: StoredNames | undefined;
  /** When the read of `known` began, in milliseconds of `performance.now()`. */
  let readAtMs = Number.NEGATIVE_INFINITY;
  return {
    /** Those of the last refresh: the same object until they change. */
    known: (): StoredNames | undefined => known,

    /** @returns those of this read, or of a later one @throws DatabaseError */
    async refresh(): Promise<StoredNames> {
      const startedAtMs = performance.now();
      const read = await readNames();
      if (known && startedAtMs < readAtMs) return known; // a later read was faster
      readAtMs = startedAtMs;
      if (!known || !isDeepStrictEqual(read, known)) known = read;
      return known;
    },

    /** Replaces the ids in the fields `tenant` and `environment` by the newest names. */
    withNames<Fields extends { readonly tenant?: unknown; readonly environment?: unknown } | LogFields>(
      fields: Fields,
    ): Fields {
      if (!known) return fields;
      const { tenant, environment } = fields;
      return {
        ...fields,
        ...(typeof tenant === 'string' && { tenant: newestName(known.tenants, tenant) }),
        ...(typeof environment === 'string' && { environment: newestName(known.environments, environment) }),
      };
    },

    /** The ids of these names; a name that is not known is one. */
    tenantIdOf: (name: string): string => idIn(known?.tenants ?? [], name),
    environmentIdOf: (name: string): string => idIn(known?.environments ?? [], name),

    /** What records of requests contain for the tenant with this name: see `recordedTenantOf`. */
    recordedAs(name: string): readonly string[] {
      const id = known?.tenants.find((tenant) => tenant.name === name)?.id ?? name;
      return [id, `${name}${unidentifiedSuffix}`];
    },

    /** The newest name of a tenant in a record. */
    nameOf(recorded: string): string {
      if (recorded.endsWith(unidentifiedSuffix)) return recorded.slice(0, -unidentifiedSuffix.length);
      return newestName(known?.tenants ?? [], recorded);
    },
  };
}

/** A log for parts that know ids only. */
export const logWithNames =
  (log: Log, { withNames }: KnownNames): Log =>
  (level, message, fields: LogFields = {}) =>
    log(level, message, withNames(fields));
