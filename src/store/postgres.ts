/** The database of several instances: PostgreSQL. Only this file imports pg. */

import { createHash } from 'node:crypto';
import {
  Client,
  type ClientBase,
  type ClientConfig,
  Pool,
  type PoolClient,
  type QueryConfig,
  DatabaseError as ServerError,
  types,
} from 'pg';
import {
  type Columns,
  type Database,
  DatabaseAccessError,
  DatabaseError,
  type Effect,
  hasNoEffect,
  oneByOne,
  type Row,
  type Statement,
  type Value,
} from './database.ts';
import { createPostgresHosts, type PostgresHosts } from './postgres-hosts.ts';

/** Few: while all of them are in use, requests wait, and their statements are sent together. */
const defaultConnections = 4;
/** So that all connections get new settings of the role. Seconds. */
const maxLifetimeS = 60;
/** The pool's error when no connection became free: it says nothing about the host. */
const queueTimeout = 'timeout exceeded when trying to connect';
/** For connecting, and for each statement. Milliseconds. */
const timeoutMs = 2_000;

/** 64-bit integers are times and counts, which a number holds exactly. */
types.setTypeParser(types.builtins.INT8, Number);

/** A message of PostgreSQL (its protocol, "ParameterStatus"). */
interface ParameterStatus {
  readonly parameterName: string;
  readonly parameterValue: string;
}

interface Connections {
  /** How many at most. */
  readonly connections?: number | undefined;
  /** Shared by all connections of this process, so that they lead to one server. */
  readonly hosts?: PostgresHosts;
}

/** @param url as `state.postgres` */
export function connectPostgres(
  url: string,
  { connections = defaultConnections, hosts = createPostgresHosts(url) }: Connections = {},
): Database {
  class HostClient extends Client {
    /** Of its host, in the order of the address. */
    readonly hostIndex: number;
    /** Settings that the server has reported. */
    readonly reported: Record<string, string> = {};
    /** Whether its server does not accept writes any more. */
    isReadOnly = false;
    #warning: string | undefined = undefined;

    constructor(options?: ClientConfig) {
      const host = hosts.next();
      super({ ...options, ...hosts.optionsFor(host) });
      this.hostIndex = host;
      this.connection.on('parameterStatus', ({ parameterName, parameterValue }: ParameterStatus) => {
        this.reported[parameterName] = parameterValue;
      });
      // A cancelled wait for a standby is a warning (01000), or 57P01 if a shutdown has ended it. Our statements cause no other warnings.
      this.on('notice', ({ code = '', message = '' }) => {
        if (code.startsWith('01') || code.startsWith('57')) this.#warning = message;
      });
    }

    /** What the server has said since the last call, although it has executed the statement. */
    takeWarning(): string | undefined {
      const warning = this.#warning;
      this.#warning = undefined;
      return warning;
    }
  }

  type PooledClient = PoolClient & HostClient;

  async function refuseReadOnly(client: HostClient): Promise<void> {
    if (await isReadOnly(client))
      throw new Error('it is read-only, as a standby is; state.postgres must name the primary server');
    hosts.accepts(client.hostIndex);
  }

  /** PostgreSQL reports both settings when a client connects; some poolers do not. */
  async function isReadOnly(client: HostClient): Promise<boolean> {
    const { in_hot_standby: standby, default_transaction_read_only: byDefault } = client.reported;
    if (standby !== undefined && byDefault !== undefined) return standby === 'on' || byDefault === 'on';
    const { rows } = await withTimeout(
      client,
      client.query<Row>('SHOW transaction_read_only'), // on a standby, too
      timeoutMs,
    );
    return rows[0]?.transaction_read_only !== 'off';
  }

  const pool = new Pool({
    Client: HostClient,
    onConnect: (client) => refuseReadOnly(client as PooledClient), // the pool waits for it
    max: connections,
    connectionTimeoutMillis: timeoutMs,
    maxLifetimeSeconds: maxLifetimeS,
    application_name: 'penstock',
    keepAlive: true,
  });
  const ignore = () => {}; // the next statement fails
  pool.on('error', ignore); // of an idle connection
  pool.on('connect', (client) => client.on('error', ignore)); // of one in use: without a listener it would end the process

  let canPrepare = true;

  async function run(
    client: PooledClient,
    query: QueryConfig,
    maxMs: number = timeoutMs,
  ): Promise<readonly Row[]> {
    client.takeWarning(); // of an earlier statement
    let rows: readonly Row[];
    try {
      ({ rows } = await withTimeout(client, client.query<Row>(query), maxMs));
    } catch (cause) {
      if (codeOf(cause) === readOnlyCode) client.isReadOnly = true;
      throw databaseError(cause);
    }
    // The wait for a synchronous standby was cancelled: the commit is only on this server, and a failover would lose it.
    const warning = client.takeWarning();
    if (warning !== undefined) throw new DatabaseError(`PostgreSQL: ${warning}`, 'unknown');
    return rows;
  }

  /** Plans the statement once for each connection, if the server allows it. */
  async function runPrepared(client: PooledClient, query: QueryConfig): Promise<readonly Row[]> {
    const { text, values = [] } = query;
    if (!canPrepare) return run(client, { text, values });
    try {
      return await run(client, query);
    } catch (thrown) {
      if (!(thrown instanceof NotPreparedError)) throw thrown;
      canPrepare = false;
      return run(client, { text, values });
    }
  }

  /** A connection to the server that accepts writes. @throws DatabaseError */
  async function connect(): Promise<PooledClient> {
    const failures: string[] = [];
    while (failures.length < hosts.count) {
      const host = hosts.next();
      try {
        const client = (await pool.connect()) as PooledClient;
        if (hosts.isUsed(client.hostIndex)) return client;
        client.release(true);
      } catch (cause) {
        const denied = accessError(cause);
        if (denied) throw denied;
        if (whyOf(cause) === queueTimeout)
          throw new DatabaseError(
            'PostgreSQL: no connection became free within 2 s: all are in use, or it does not answer',
            'none',
            cause,
          );
        failures.push(`${hosts.nameOf(host)}: ${whyOf(cause)}`);
        hosts.failed(host);
      }
    }
    throw new DatabaseError(`PostgreSQL cannot be used: ${failures.join('; ')}`, 'none');
  }

  async function withClient<Result>(use: (client: PooledClient) => Promise<Result>): Promise<Result> {
    const client = await connect();
    let isBroken = true;
    try {
      const result = await use(client);
      isBroken = false;
      return result;
    } catch (thrown) {
      isBroken = !hasNoEffect(thrown);
      throw thrown;
    } finally {
      if (client.isReadOnly) hosts.failed(client.hostIndex);
      client.release(isBroken || client.isReadOnly); // a connection whose last statement is uncertain is closed
    }
  }

  return {
    dialect: 'postgres',
    connections: () => ({ in_use: pool.totalCount - pool.idleCount, waiting: pool.waitingCount }),
    batch(statement, rows) {
      const { columns, ...prepared } = preparedOf(statement);
      const queryOf = (some: readonly Readonly<Record<string, Value>>[]): QueryConfig => ({
        ...prepared,
        values: columns.map((column) => some.map((row) => row[column] ?? null)),
      });
      return withClient(async (client) => {
        try {
          return { rows: await runPrepared(client, queryOf(rows)), refused: new Map() };
        } catch (thrown) {
          if (!hasNoEffect(thrown)) throw thrown;
          if (rows.length === 1) return { rows: [], refused: new Map([[0, thrown]]) };
          return oneByOne(rows, (row) => runPrepared(client, queryOf([row])));
        }
      });
    },
    query: (sql, values = []) => withClient((client) => run(client, { text: sql, values: [...values] })),
    // Several statements in one message are one transaction.
    execute: (script, maxMs) =>
      withClient(async (client) => {
        await run(client, { text: script }, maxMs);
      }),
    close: async () => {
      if (!pool.ending) await pool.end();
    },
  };
}

/** Ends a connection whose statement takes too long: `statement_timeout` does not end the wait for a standby. */
async function withTimeout<Result>(
  client: ClientBase,
  result: Promise<Result>,
  maxMs: number,
): Promise<Result> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    if (client instanceof Client) client.connection.stream.destroy();
    reject(new Error(`no answer within ${maxMs} ms`));
  }, maxMs);
  try {
    return await Promise.race([result, promise]);
  } finally {
    clearTimeout(timer);
  }
}

interface Prepared {
  readonly name: string;
  readonly text: string;
  readonly columns: readonly string[];
}

const preparedStatements = new WeakMap<object, Prepared>();

function preparedOf(statement: Statement<Columns>): Prepared {
  const known = preparedStatements.get(statement);
  if (known) return known;
  const text = textOf(statement);
  // Behind a pooler, instances of several versions share connections: one name must not stand for two texts.
  const name = `penstock_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
  const prepared = { name, text, columns: Object.keys(statement.columns) };
  preparedStatements.set(statement, prepared);
  return prepared;
}

/** The input is an array for each column. With a statement before it, both are one statement: they share one round trip and one commit. */
function textOf<Input extends Columns>({ columns, before, sql }: Statement<Input>): string {
  const names = Object.keys(columns).join(', ');
  const arrays = Object.values(columns).map((type, index) => `$${index + 1}::${type}[]`);
  const input = `(SELECT * FROM unnest(${arrays.join(', ')}) AS input (${names}))`;
  if (!before) return sql(input, '');
  return `WITH input AS ${input}, changed AS (${before.sql('input')} RETURNING ${before.table}.*) ${sql('input', 'changed')}`;
}

/** The statement was not executed: it can be without a name. */
class NotPreparedError extends DatabaseError {}

/**
 * A pooler has given this connection to another client in the meantime, so that the name does not exist, or exists already (26000, 42P05).
 * Or a migration has changed the type of a column that a prepared statement returns (0A000).
 */
const notPreparedCodes: ReadonlySet<string> = new Set(['26000', '42P05', '0A000']);

/** The server has become a standby, or allows no writes any more. */
const readOnlyCode = '25006';

/** An error with a code of SQL comes from the server, which has rolled the statement back. */
function databaseError(cause: unknown): DatabaseError {
  if (notPreparedCodes.has(codeOf(cause)))
    return new NotPreparedError(`PostgreSQL: ${whyOf(cause)}`, 'none', cause);
  return (
    accessError(cause) ?? new DatabaseError(`PostgreSQL: ${whyOf(cause)}`, effectOf(codeOf(cause)), cause)
  );
}

/**
 * By class (PostgreSQL, appendix A). 08 and 57P end connections, and 40003 says itself that the outcome is unknown. 22, 23 and 54 concern
 * values: 54 is also that of a text that is too long for an index. After all others, the same statement may succeed later.
 */
function effectOf(code: string): Effect {
  if (!/^[0-9A-Z]{5}$/.test(code) || /^(08|57P|40003)/.test(code)) return 'unknown';
  return /^(22|23|54)/.test(code) ? 'none-ever' : 'none';
}

/** Of SQL; empty for errors of the connection, such as EPIPE. */
const codeOf = (cause: unknown): string => (cause instanceof ServerError ? String(cause.code) : '');

function accessError(cause: unknown): DatabaseAccessError | undefined {
  const remedy = remedyOf(codeOf(cause));
  if (remedy === undefined) return undefined;
  return new DatabaseAccessError(`PostgreSQL: ${whyOf(cause)}; ${remedy}`, 'none', cause);
}

/** If somebody must change the role, its rights or the address. */
function remedyOf(code: string): string | undefined {
  if (code.startsWith('28')) return 'check the role and the password in state.postgres, and pg_hba.conf';
  if (code === '3D000') return 'create it, or check the address in state.postgres';
  if (code === '42501') return 'make this role the owner of the database and of its tables';
  return undefined;
}

const whyOf = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause));
