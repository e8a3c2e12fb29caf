/** The active environment, which receives new payments, as the only row of a table. Each switch increases its version. */

import type { Database, Row } from './database.ts';

export interface StoredActiveEnvironment {
  readonly environment: string;
  /** 1 in a new database. */
  readonly version: number;
}

export type ActiveEnvironmentTable = ReturnType<typeof createActiveEnvironmentTable>;

/** Every function @throws DatabaseError; a switch may have been made nevertheless. */
export function createActiveEnvironmentTable(database: Database) {
  const read = async (): Promise<StoredActiveEnvironment | undefined> => {
    const [row] = await database.query('SELECT environment, version FROM active_environment');
    return row && recordOf(row);
  };

  return {
    /** `undefined` in a new database. */
    read,

    /** Reads it. In a new database, the configured one becomes active. */
    async readOr(configured: string): Promise<StoredActiveEnvironment> {
      for (;;) {
        const stored = await read();
        if (stored) return stored;
        await database.query(
          `INSERT INTO active_environment (only_row, environment, version) VALUES (true, $1, 1)
           ON CONFLICT (only_row) DO NOTHING`,
          [configured],
        );
      }
    },

    /** After a failover: a switch that the database has lost. */
    async restore({ environment, version }: StoredActiveEnvironment): Promise<void> {
      await database.query(
        'UPDATE active_environment SET environment = $1, version = $2 WHERE version < $2',
        [environment, version],
      );
    },

    /** @returns `undefined` if the version is another one: somebody else has switched */
    async switchTo(environment: string, version: number): Promise<StoredActiveEnvironment | undefined> {
      const [row] = await database.query(
        `UPDATE active_environment SET environment = $1, version = version + 1 WHERE version = $2
         RETURNING environment, version`,
        [environment, version],
      );
      return row && recordOf(row);
    },
  };
}

const recordOf = ({ environment, version }: Row): StoredActiveEnvironment => ({
  environment: String(environment),
  version: Number(version),
});
