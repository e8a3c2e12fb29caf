/** Clients, tenants and environments whose configuration changes, on one database that several gateways share. */

import { createHash, randomUUID } from 'node:crypto';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { createMemoryState } from '../../src/state/memory.ts';
import type { Database } from '../../src/store/database.ts';
import { openGatewayDatabase } from '../../src/store/gateway-database.ts';
import { callAdminApi } from './admin-api.ts';
import { call, jsonOf, type Reply } from './call.ts';
import { newGatewayDatabase, newMigratedPostgres } from './database.ts';
import { type GatewayUnderTest, type Sections, startBank, startGateway } from './gateway.ts';
import { initiation, transfersPath } from './request.ts';
import type { TestScope } from './test-scope.ts';

/** A client whose API key is named after it, unless another one is named. */
export const client = (name: string, key = name) => ({
  name,
  apiKeySha256: createHash('sha256').update(`key of ${key}`).digest('hex'),
});

const header = (key: string | undefined) =>
  key === undefined ? [] : ([['X-API-Key', `key of ${key}`]] as const);

export const pay = (
  { url }: GatewayUnderTest,
  key: string | undefined,
  requestId: string = randomUUID(),
): Promise<Reply> =>
  call(url, { ...initiation, requestId, headers: [...initiation.headers, ...header(key)] });

export const ask = (
  { url }: GatewayUnderTest,
  method: 'GET' | 'DELETE',
  key: string | undefined,
  id: unknown,
): Promise<Reply> => call(url, { method, path: `${transfersPath}/${id}`, headers: header(key) });

export const idOf = (reply: Reply) => jsonOf(reply).paymentId;
export const verdictOf = (reply: Reply) => reply.header('Penstock-Error') ?? reply.status;
export const isReplay = (reply: Reply) => reply.header('Idempotent-Replayed') === 'true';

/** Renames a tenant or an environment, or moves one, in a running gateway. */
export async function change(gateway: GatewayUnderTest, path: string, to: string): Promise<void> {
  const { status, text } = await callAdminApi(gateway, 'POST', `/api/${path}`, { to, reason: 'a test' });
  if (status !== 200) throw new Error(text);
}

export interface SharedDatabase {
  readonly bank: SimulatedBank;
  /** The environment `sandbox` is the bank. */
  readonly sections: Sections;
  /** Another gateway with this database. Nothing else is shared: each one has a state of its own. */
  startAnother(sections: Sections, wrap?: (database: Database) => Database): Promise<GatewayUnderTest>;
}

/** One bank and one database, in memory or in PostgreSQL, for several gateways. */
export async function shareDatabase(
  t: TestScope,
  dialect: Database['dialect'] = 'sqlite',
): Promise<SharedDatabase> {
  const bank = await startBank(t, { name: 'one' });
  const postgres = dialect === 'postgres' ? await newMigratedPostgres() : undefined;
  const inMemory = postgres === undefined ? await newGatewayDatabase(t) : undefined;
  return {
    bank,
    sections: { environments: { sandbox: { baseUrl: bank.baseUrl } } },
    startAnother(sections, wrap = (database) => database) {
      if (inMemory) {
        const database = wrap({ ...inMemory, close: async () => {} });
        return startGateway(t, sections, { state: createMemoryState(), database });
      }
      const { database, heartbeatDatabase } = openGatewayDatabase({ postgres: postgres ?? null, file: null });
      return startGateway(t, sections, {
        ...{
          state: createMemoryState(),
          database: wrap(database),
          heartbeatDatabase: wrap(heartbeatDatabase),
        },
      });
    },
  };
}
