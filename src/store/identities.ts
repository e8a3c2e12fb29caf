/**
 * The tenants of all clients, and the addresses of all environments, that were ever used. A tenant and an environment keep their first
 * name as id, which all other rows contain: a rename adds a name.
 */

import { type Database, DatabaseError, type Row } from './database.ts';

/** A name of a tenant or an environment. */
export interface StoredName {
  readonly name: string;
  /** The first name. */
  readonly id: string;
}

/** The first names, and then the others in the order in which they were given. */
export interface StoredNames {
  /** Increases when a credential gets another tenant, or the first clients appear. */
  readonly revision: number;
  readonly tenants: readonly StoredName[];
  readonly environments: readonly StoredName[];
}

export interface StoredIdentities extends StoredNames {
  /** The ids of tenants by the SHA-256 of an API key or certificate. */
  readonly credentials: ReadonlyMap<string, string>;
  /** Origin and base path, by the id of the environment. */
  readonly addresses: ReadonlyMap<string, string>;
}

/** Names that become ids, and credentials. */
export interface NewIdentities {
  readonly tenants: readonly string[];
  readonly environments: readonly string[];
  readonly credentials: readonly { readonly hash: string; readonly tenant: string }[];
}

export type RenameOutcome = 'renamed' | 'unknown' | 'in-use';

export type IdentityTable = ReturnType<typeof createIdentityTable>;

/** Every function @throws DatabaseError; a change may have been made nevertheless. */
export function createIdentityTable(database: Database) {
  /** One statement, so that the names and the revision are of one moment. */
  async function readNames(): Promise<StoredNames> {
    const rows = await database.query(
      `SELECT 'tenant' AS kind, name, tenant AS id, named_at FROM tenant_name
       UNION ALL SELECT 'environment', name, environment, named_at FROM environment_name
       UNION ALL SELECT 'revision', '', '', revision FROM identity_revision ORDER BY named_at, name`,
    );
    const namesOf = (kind: string) => {
      const names = rows.filter((row) => row.kind === kind).map(nameOf);
      return [...names.filter(({ name, id }) => name === id), ...names.filter(({ name, id }) => name !== id)];
    };
    return {
      revision: Number(rows.find(({ kind }) => kind === 'revision')?.named_at),
      tenants: namesOf('tenant'),
      environments: namesOf('environment'),
    };
  }

  async function readAddresses(): Promise<StoredIdentities['addresses']> {
    return mapOf(
      await database.query('SELECT environment AS key, address AS value FROM environment_address'),
    );
  }

  return {
    readNames,

    readAddresses,

    async readCredentials(): Promise<StoredIdentities['credentials']> {
      return mapOf(await database.query('SELECT hash AS key, tenant AS value FROM credential'));
    },

    /**
     * Inserts all of them in one transaction, or nothing. New credentials increase the revision: instances without clients must stop when
     * others get some.
     *
     * @returns false if one is there already: another instance has inserted it
     */
    async insert({ tenants, environments, credentials }: NewIdentities): Promise<boolean> {
      const script = [
        ...tenants.map((name) => insertInto('tenant_name', text(name), text(name), 'now_ms()')),
        ...environments.map((name) => insertInto('environment_name', text(name), text(name), 'now_ms()')),
        ...credentials.map(({ hash, tenant }) => insertInto('credential', text(hash), text(tenant))),
        ...(credentials.length > 0 ? [`${increaseRevision};`] : []),
      ].join('\n');
      if (script === '') return true;
      try {
        await database.execute(script);
        return true;
      } catch (thrown) {
        if (thrown instanceof DatabaseError && thrown.effect === 'none-ever') return false;
        throw thrown;
      }
    },

    /** Whether this tenant has sent a write, or has a payment. Reads whole tables if it has none. */
    async hasPayments(tenant: string): Promise<boolean> {
      const found = await database.query(
        `SELECT 1 AS found WHERE EXISTS (SELECT 1 FROM payment WHERE tenant = $1)
           OR EXISTS (SELECT 1 FROM ledger WHERE tenant = $1)`,
        [tenant],
      );
      return found.length > 0;
    },

    /** Forgets a tenant that has no other name. To be called only if it has no payments. */
    async forgetTenant(tenant: string): Promise<void> {
      await database.query(
        `DELETE FROM tenant_name WHERE name = $1 AND tenant = $1
           AND NOT EXISTS (SELECT 1 FROM credential WHERE tenant = $1)
           AND NOT EXISTS (SELECT 1 FROM tenant_name AS other WHERE other.tenant = $1 AND other.name <> $1)`,
        [tenant],
      );
    },

    /** Fixes the address of an environment, if it has none. @returns the one that it has now */
    async fixAddress(environment: string, address: string): Promise<string> {
      const [row] = await database.query(
        `INSERT INTO environment_address (environment, address) VALUES ($1, $2)
         ON CONFLICT (environment) DO UPDATE SET address = environment_address.address RETURNING address`,
        [environment, address],
      );
      return String(row?.address);
    },

    /** `undefined` if it is not fixed. */
    async addressOf(environment: string): Promise<string | undefined> {
      const [row] = await database.query('SELECT address FROM environment_address WHERE environment = $1', [
        environment,
      ]);
      return row && String(row.address);
    },

    /** Adds a name to a tenant. Repeating it has no effect. `in-use`: another tenant has or has had the name. */
    renameTenant: (from: string, to: string) => rename('tenant_name', 'tenant', from, to),

    /** As `renameTenant`. What operators hold stays held under both names. */
    async renameEnvironment(from: string, to: string): Promise<RenameOutcome> {
      const outcome = await rename('environment_name', 'environment', from, to);
      if (outcome === 'renamed')
        await database.query(
          `INSERT INTO hold (environment, lane, held_as, reason, until_ms)
           SELECT $2, lane, held_as, reason, until_ms FROM hold WHERE environment = $1
           ON CONFLICT (environment, lane) DO NOTHING`,
          [from, to],
        );
      return outcome;
    },

    /** Gives credentials to the tenant with this name: then what all instances know is out of date. */
    async moveCredentials(hashes: readonly string[], tenantName: string): Promise<void> {
      const name = text(tenantName);
      const owner = `(SELECT tenant FROM tenant_name WHERE name = ${name})`;
      const moved = hashes.map(
        (hash) => `INSERT INTO credential (hash, tenant) VALUES (${text(hash)}, ${owner})
          ON CONFLICT (hash) DO UPDATE SET tenant = excluded.tenant;`,
      );
      await database.execute(`
        INSERT INTO tenant_name (name, tenant, named_at) VALUES (${name}, ${name}, now_ms()) ON CONFLICT (name) DO NOTHING;
        ${moved.join('\n')}
        ${increaseRevision};`);
    },

    /**
     * Replaces the address of the environment with this name.
     *
     * @returns the former one; `undefined` if it has none, because nothing was sent to it
     */
    async moveEnvironment(name: string, address: string): Promise<string | undefined> {
      const [former] = await database.query(
        `SELECT address FROM environment_address JOIN environment_name USING (environment) WHERE name = $1`,
        [name],
      );
      if (!former) return undefined;
      await database.query(
        `UPDATE environment_address SET address = $2
         WHERE environment = (SELECT environment FROM environment_name WHERE name = $1)`,
        [name, address],
      );
      return String(former.address);
    },
  };

  async function rename(
    table: 'tenant_name' | 'environment_name',
    column: 'tenant' | 'environment',
    from: string,
    to: string,
  ): Promise<RenameOutcome> {
    await database.query(
      `INSERT INTO ${table} (name, ${column}, named_at) SELECT $2, ${column}, now_ms() FROM ${table} WHERE name = $1
       ON CONFLICT (name) DO NOTHING`,
      [from, to],
    );
    const rows = await database.query(`SELECT name, ${column} AS id FROM ${table} WHERE name IN ($1, $2)`, [
      from,
      to,
    ]);
    const idOf = (name: string) => rows.find((row) => row.name === name)?.id;
    if (idOf(from) === undefined) return 'unknown';
    return idOf(from) === idOf(to) ? 'renamed' : 'in-use';
  }
}

const increaseRevision = 'UPDATE identity_revision SET revision = revision + 1';

const nameOf = ({ name, id }: Row): StoredName => ({ name: String(name), id: String(id) });

const mapOf = (rows: readonly Row[]): ReadonlyMap<string, string> =>
  new Map(rows.map(({ key, value }) => [String(key), String(value)]));

/** Without ON CONFLICT: an existing row makes the transaction fail. */
const insertInto = (table: string, ...values: readonly string[]) =>
  `INSERT INTO ${table} VALUES (${values.join(', ')});`;

/** A script has no parameters. */
const text = (value: string) => `'${value.replaceAll("'", "''")}'`;
