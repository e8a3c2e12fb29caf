/** Names for people, in place of the identities that stored records contain. */

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

/** A log for parts that know identities only. */
export const logWithNames =
  (log: Log, withNames: WithNames): Log =>
  (level, message, fields: LogFields = {}) =>
    log(level, message, withNames(fields));
