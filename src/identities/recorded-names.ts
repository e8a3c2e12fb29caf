/** Names for people, in place of the identities that stored records contain. */

import { unidentifiedSuffix } from '../request/identities.ts';
import type { Log, LogFields } from '../telemetry/log.ts';
import type { IdentitiesStore } from './identities-store.ts';

/** Replaces the identities in the fields `tenant` and `environment` by the names that are in use now. */
export type WithNames = <
  Fields extends { readonly tenant?: unknown; readonly environment?: unknown } | LogFields,
>(
  fields: Fields,
) => Fields;

export function createWithNames({ known }: Pick<IdentitiesStore, 'known'>): WithNames {
  return (fields) => {
    const record = known();
    if (!record) return fields;
    const tenant = record.tenants.find(({ ids }) => ids.some((id) => id === fields.tenant))?.names[0];
    const environment = record.environments.find(({ ids }) =>
      ids.some((id) => id === fields.environment),
    )?.name;
    return {
      ...fields,
      ...(tenant !== undefined && { tenant }),
      ...(environment !== undefined && { environment }),
    };
  };
}

/** The tenants in the records of requests: see `recordedTenantOf`. */
export interface RecordedTenants {
  /** What records contain for the tenants with this name; if there is none, for those that had it before. */
  recordedAs(name: string): readonly string[];
  /** The name in use; of an unknown tenant, what the record contains. */
  nameOf(recorded: string): string;
}

export function createRecordedTenants({ known }: Pick<IdentitiesStore, 'known'>): RecordedTenants {
  return {
    recordedAs(name) {
      const tenants = known()?.tenants ?? [];
      const present = tenants.filter(({ names }) => names[0] === name);
      const found = present.length > 0 ? present : tenants.filter(({ names }) => names.includes(name));
      const ids = found.flatMap((tenant) => tenant.ids);
      return [...(ids.length > 0 ? ids : [name]), `${name}${unidentifiedSuffix}`];
    },
    nameOf(recorded) {
      if (recorded.endsWith(unidentifiedSuffix)) return recorded.slice(0, -unidentifiedSuffix.length);
      return known()?.tenants.find(({ ids }) => ids.includes(recorded))?.names[0] ?? recorded;
    },
  };
}

/** A log for parts that know identities only. */
export const logWithNames =
  (log: Log, withNames: WithNames): Log =>
  (level, message, fields: LogFields = {}) =>
    log(level, message, withNames(fields));
