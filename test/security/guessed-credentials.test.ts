/**
 * Attack: somebody reads the store, and wants the password or TAN of a payer. A PIN has five digits, so a hash of a body is enough:
 * it takes 0.2 s to try all of them. Here the PINs are tried against everything that the gateway stores.
 */
import assert from 'node:assert/strict';
import { createHash, hash, randomBytes, randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { z } from 'zod';
import { createMemoryState } from '../../src/state/memory.ts';
import type { State } from '../../src/state/ports.ts';
import type { Database, Value } from '../../src/store/database.ts';
import { migrate } from '../../src/store/migrations.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { type Call, call } from '../kit/call.ts';
import { newGatewayDatabase } from '../kit/database.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { redisStateFactory, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { initiation, transfersPath } from '../kit/request.ts';

const pin = '48213';
const paymentId = 'payment-1';
const authorisation = `${transfersPath}/${paymentId}/authorisations`;
const psuId = 'anna';

/** The requests whose body contains a PIN. */
const requests: readonly (Pick<Call, 'path'> & {
  readonly method: string;
  readonly bodyWith: (pin: string) => string;
})[] = [
  { method: 'POST', path: authorisation, bodyWith: (pin) => `{"psuData":{"password":"${pin}"}}` },
  { method: 'PUT', path: `${authorisation}/sca-1`, bodyWith: (pin) => `{"scaAuthenticationData":"${pin}"}` },
  {
    method: 'PUT',
    path: `${transfersPath}/${paymentId}`,
    bodyWith: (pin) => `{"psuData":{"password":"${pin}"}}`,
  },
];

const sha256 = (...parts: readonly string[]) => hash('sha256', parts.join(''), 'base64url');

/** Every hash of a request that a reader of the source could compare, if it covered the body: of this edition and the former one. */
function hashesOf(method: string, path: string, body: string): readonly string[] {
  const whole = sha256(`${JSON.stringify([method, path])}\0`, body);
  const payer = [[psuId], [], [], []];
  const headers = ['application/json', null];
  return [
    sha256(body),
    whole,
    sha256(`${JSON.stringify([whole])}\0`),
    sha256(`${JSON.stringify([whole, ...headers, ...payer])}\0`),
    sha256(`${JSON.stringify([method, path, ...headers])}\0`, body),
    sha256(`${JSON.stringify([method, path, ...headers, ...payer])}\0`, body),
  ];
}

/** The PIN behind each hash, and behind the digest that the TPP sends. */
const pinOfHash = new Map(
  requests.flatMap(({ method, path, bodyWith }) =>
    Array.from({ length: 100_000 }, (_, number) => `${number}`.padStart(5, '0')).flatMap((guess) =>
      hashesOf(method, path, bodyWith(guess)).map((hashed) => [hashed, guess] as const),
    ),
  ),
);

/** The PINs that a reader of the bytes finds: in a body, or behind a hash as bytes, in base64, base64url or hexadecimal digits. */
function pinsIn(stored: Buffer): readonly string[] {
  const text = stored.toString('latin1');
  const found = new Set<string>();
  const find = (hashed: string) => {
    const guess = pinOfHash.get(hashed);
    if (guess !== undefined) found.add(guess);
  };
  for (let at = 0; at + 32 <= stored.length; at++) find(stored.subarray(at, at + 32).toString('base64url'));
  for (const [run] of text.matchAll(/[\w+/-]{43,}/g))
    for (let at = 0; at + 43 <= run.length; at++)
      find(
        run
          .slice(at, at + 43)
          .replaceAll('+', '-')
          .replaceAll('/', '_'),
      );
  for (const [run] of text.matchAll(/[0-9a-f]{64,}/gi))
    for (let at = 0; at + 64 <= run.length; at++)
      find(Buffer.from(run.slice(at, at + 64), 'hex').toString('base64url'));
  for (const { bodyWith } of requests) {
    const body = Buffer.from(bodyWith(pin));
    const inBase64 = [0, 1, 2].map((shift) =>
      Buffer.concat([Buffer.alloc(shift), body])
        .toString('base64')
        .slice(4, -4),
    );
    if ([body.toString(), body.toString('hex'), ...inBase64].some((form) => text.includes(form)))
      found.add(pin);
  }
  return [...found];
}

interface Store {
  readonly state: State;
  readonly database: Database;
  /** Everything in it. */
  dump(): Promise<Buffer>;
}

const stores: Readonly<Record<string, (t: TestContext) => Promise<Store>>> = {
  memory: async (t) => {
    const written: string[] = [];
    const state = recording(createMemoryState(), (argument) => written.push(argument));
    const database = await newGatewayDatabase(t);
    const dump = async () => Buffer.concat([Buffer.from(written.join('\n')), await ledgerIn(database)]);
    return { state, database, dump };
  },
  'a file': async (t) => {
    const ledger = join(temporaryFolder(t), 'ledger.db');
    const database = openSqlite(ledger);
    t.after(() => database.close());
    await migrate(database);
    const files = [ledger, `${ledger}-wal`];
    const dump = async () => Buffer.concat(files.map((one) => readFileSync(one)));
    return { state: createMemoryState(), database, dump };
  },
  'PostgreSQL and Redis': async (t) => {
    const database = await newGatewayDatabase(t, 'postgres');
    const redis = await startRedis(t, ['--rdbcompression', 'no']);
    const dump = async () => {
      await redis.command('SAVE');
      const [, folder] = z.tuple([z.string(), z.string()]).parse(await redis.command('CONFIG', 'GET', 'dir'));
      return Buffer.concat([readFileSync(join(folder, 'dump.rdb')), await ledgerIn(database)]);
    };
    return { state: redisStateFactory(redis.url)(), database, dump };
  },
};

/** The bytes of all values in the ledger. */
async function ledgerIn(database: Database): Promise<Buffer> {
  const rows = await database.query('SELECT * FROM ledger');
  const bytesOf = (value: Value) =>
    value instanceof Uint8Array ? Buffer.from(value) : Buffer.from(`${value}\n`);
  return Buffer.concat(rows.flatMap((row) => Object.values(row).map(bytesOf)));
}

/** A state that reports every argument with which it is called, as JSON. */
function recording<Part extends object>(part: Part, record: (argument: string) => unknown): Part {
  return new Proxy(part, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member === 'object' && member !== null) return recording(member, record);
      if (typeof member !== 'function') return member;
      return (...all: readonly unknown[]) => {
        record(JSON.stringify(all) ?? '');
        return Reflect.apply(member, target, all);
      };
    },
  });
}

/** Sends each request with the PIN, and returns what is stored afterwards. */
async function storedAfterRequests(t: TestContext, store: Store, sections: object): Promise<Buffer> {
  const bank = await startBank(t, {
    profile: { ids: { authorisation: 'sca-1' }, sca: { startLink: 'updatePsuAuthentication' } },
  });
  const environments = { sandbox: { baseUrl: bank.baseUrl } };
  const standard = { alsoOffer: ['updatePsuData', 'updatePayment'] };
  const gateway = await startGateway(
    t,
    { environments, standard, ...sections },
    { state: store.state, database: store.database, heartbeatDatabase: store.database },
  );
  bank.nextPaymentId(paymentId);
  assert.equal((await call(gateway.url, initiation)).status, 201);
  for (const { method, path, bodyWith } of requests) {
    const body = bodyWith(pin);
    const digest = createHash('sha256').update(body).digest('base64');
    const headers = [
      ['Content-Type', 'application/json'],
      ['PSU-ID', psuId],
      ['Digest', `SHA-256=${digest}`],
      ['Content-Digest', `sha-256=:${digest}:`],
    ] as const;
    await call(gateway.url, {
      method: method === 'PUT' ? 'PUT' : 'POST',
      path,
      headers,
      body,
      requestId: randomUUID(),
    });
    assert.equal(bank.requests.at(-1)?.body.toString(), body, 'the bank gets the PIN');
  }
  const stored = await store.dump();
  assert.ok(stored.includes(paymentId) || 'state' in sections, 'the store has entries');
  return stored;
}

describe('a five-digit PIN in the body of a request', () => {
  for (const [name, startStore] of Object.entries(stores))
    for (const hasKey of [false, true])
      test(`is not found by trying all PINs in ${name}, ${hasKey ? 'with' : 'without'} an encryption key`, {
        skip: name.includes('Redis') && skipWithoutRedisServer,
      }, async (t) => {
        const encryptionKeyFile = join(temporaryFolder(t), 'state.key');
        writeFileSync(encryptionKeyFile, randomBytes(32).toString('base64'));
        const store = await startStore(t);
        const stored = await storedAfterRequests(t, store, hasKey ? { state: { encryptionKeyFile } } : {});
        assert.ok(stored.length > 1_000);
        assert.deepEqual(pinsIn(stored), []);
      });

  test('would be found behind each of these hashes, in each form', () => {
    for (const { method, path, bodyWith } of requests)
      for (const hashed of hashesOf(method, path, bodyWith(pin))) {
        const bytes = Buffer.from(hashed, 'base64url');
        const forms = [
          bytes,
          Buffer.from(hashed),
          Buffer.from(bytes.toString('base64')),
          Buffer.from(bytes.toString('hex')),
        ];
        for (const form of forms)
          assert.deepEqual(pinsIn(Buffer.concat([Buffer.from('before: '), form, Buffer.from(' after')])), [
            pin,
          ]);
      }
    for (const { bodyWith } of requests)
      for (const shift of ['', 'a', 'ab'])
        assert.deepEqual(
          pinsIn(Buffer.from(Buffer.from(`${shift}${bodyWith(pin)} after`).toString('base64'))),
          [pin],
        );
  });
});
