/**
 * Sessions of operators who use a browser, and sign-ins that have begun at an OIDC provider: rows that all instances share. The database
 * contains only a hash of the id in the cookie, and the record is encrypted where a key is configured.
 */

import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { EncryptionKeys } from '../config/encryption-keys.ts';
import { createTextEncryption } from '../state/encryption.ts';
import { parseStored } from '../state/parse-stored.ts';
import { type Database, rowsOfAll, statement } from '../store/database.ts';
import { deletedAt, deleteInBatches } from '../store/delete-in-batches.ts';
import type { SignInAttempt } from './oidc-provider.ts';
import { sha256 } from './operators.ts';

const recordShape = z.object({
  /** The name of the person as the source of the session knows it. */
  name: z.string(),
  /** Milliseconds since 1970. */
  expiresAtMs: z.number(),
  source: z.discriminatedUnion('method', [
    // The role follows from the configuration at each request, so that a reload changes or revokes it.
    z.object({ method: z.literal('token'), tokenDigest: z.string() }),
    z.object({
      method: z.literal('oidc'),
      issuer: z.string(),
      clientId: z.string(),
      groups: z.array(z.string()).readonly(),
    }),
  ]),
});

const attemptShape = z.object({
  state: z.string(),
  nonce: z.string(),
  codeVerifier: z.string(),
  /** The path and the query of the page of the console on which the sign-in has begun. */
  page: z.string(),
});

type StoredAttempt = SignInAttempt & Readonly<z.output<typeof attemptShape>>;

export type SessionRecord = Readonly<z.output<typeof recordShape>>;

export interface Session extends SessionRecord {
  /** Under which the database has the record. It reveals nothing of the id. */
  readonly key: string;
}

export type Sessions = ReturnType<typeof createSessions>;

const find = statement({
  columns: { key_hash: 'text' },
  isRead: true,
  sql: (input) => `
    SELECT s.key_hash, s.record FROM ${input} AS i JOIN operator_session s ON s.key_hash = i.key_hash
    WHERE s.expires_at > now_ms()`,
});

/**
 * Every function @throws DatabaseError.
 *
 * @param keys which the records are encrypted with
 */
export function createSessions(database: Database, keys: readonly [] | EncryptionKeys = []) {
  const { encrypt, decrypt } = createTextEncryption(keys);

  const insert = (key: string, record: object, ttlMs: number) =>
    database.query(
      'INSERT INTO operator_session (key_hash, record, expires_at) VALUES ($1, $2, now_ms() + $3)',
      [key, encrypt(key, JSON.stringify(record)), Math.round(ttlMs)],
    );

  async function read(sessionKeys: readonly string[]): Promise<readonly Session[]> {
    const inputs = sessionKeys.map((key) => ({ key_hash: key }));
    const rows = await rowsOfAll(database.batch(find, inputs));
    return rows.flatMap(({ key_hash, record: stored }) => {
      const key = String(key_hash);
      const record = parseStored(recordShape, decrypt(key, String(stored)));
      return record && record.expiresAtMs > Date.now() ? [{ ...record, key }] : [];
    });
  }

  return {
    /** @returns the id for the cookie */
    async start(record: SessionRecord): Promise<string> {
      const id = randomBytes(32).toString('base64url');
      await insert(sessionKey(id), record, record.expiresAtMs - Date.now());
      return id;
    },

    /** The session with this id, unless it has expired or was ended. */
    async find(id: string): Promise<Session | undefined> {
      const [session] = await read([sessionKey(id)]);
      return session;
    },

    /** Which of these sessions, found before, have been ended on any instance. */
    async endedOf(found: readonly Session[]): Promise<readonly Session[]> {
      if (found.length === 0) return [];
      const present = new Set((await read(found.map(({ key }) => key))).map(({ key }) => key));
      return found.filter(({ key }) => !present.has(key));
    },

    /** Ends a session on all instances. */
    async end({ key }: Session): Promise<void> {
      await database.query('DELETE FROM operator_session WHERE key_hash = $1', [key]);
    },

    /** Any instance may get the answer of the provider. @param id in the cookie of the browser */
    async storeAttempt(id: string, attempt: StoredAttempt, ttlMs: number): Promise<void> {
      await insert(attemptKey(id, attempt.state), attempt, ttlMs);
    },

    /** Removes the attempt: the answer of the provider can be used once. */
    async takeAttempt(id: string, state: string): Promise<StoredAttempt | undefined> {
      const key = attemptKey(id, state);
      const [row] = await database.query(
        'DELETE FROM operator_session WHERE key_hash = $1 RETURNING record, expires_at > now_ms() AS is_valid',
        [key],
      );
      return row?.is_valid ? parseStored(attemptShape, decrypt(key, String(row.record))) : undefined;
    },

    deleteExpired: () =>
      deleteInBatches(async (limit, from) => {
        const deleted = await database.query(
          `DELETE FROM operator_session WHERE key_hash IN (
             SELECT key_hash FROM operator_session WHERE expires_at < (SELECT now_ms()) AND expires_at >= $2
             ORDER BY expires_at LIMIT $1)
           RETURNING expires_at`,
          [limit, from],
        );
        return deletedAt(deleted.map(({ expires_at }) => Number(expires_at)));
      }),
  };
}

const sessionKey = (id: string) => sha256(`session ${id}`);
const attemptKey = (id: string, state: string) => sha256(`sign-in ${id} ${state}`);
