/**
 * Sessions of operators who use a browser. All instances share them: the state contains only a hash of the id in the cookie, and the
 * record is encrypted where a key is configured.
 */

import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { parseStored } from '../state/parse-stored.ts';
import type { KeyValues, PubSub } from '../state/ports.ts';
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

export type SessionRecord = Readonly<z.output<typeof recordShape>>;

export interface Session extends SessionRecord {
  /** Under which the state has the record. It reveals nothing of the id. */
  readonly key: string;
}

export interface Sessions {
  /** @returns the id for the cookie. @throws GatewayError STATE_UNAVAILABLE (here and below) */
  start(record: SessionRecord): Promise<string>;
  /** The session with this id, unless it has expired or was ended. */
  find(id: string): Promise<Session | undefined>;
  /** Whether a session that was found before still exists. */
  exists(session: Session): Promise<boolean>;
  /** Ends a session on all instances. */
  end(session: Session): Promise<void>;
  /** @param listener called with the key when any instance ends a session. Messages can be lost: also ask `exists` */
  onEnd(listener: (key: string) => void): void;
}

const channel = 'operator-sessions';

/** @param keyValues encrypts the records if a key is configured */
export function createSessions(keyValues: KeyValues, pubsub: PubSub): Sessions {
  async function read(key: string): Promise<Session | undefined> {
    const text = await keyValues.read(key);
    const record = text === undefined ? undefined : parseStored(recordShape, text);
    return record && record.expiresAtMs > Date.now() ? { ...record, key } : undefined;
  }
  return {
    async start(record) {
      const id = randomBytes(32).toString('base64url');
      const ttlMs = record.expiresAtMs - Date.now();
      await keyValues.write(keyOf(id), JSON.stringify(record), ttlMs);
      return id;
    },
    find: (id) => read(keyOf(id)),
    exists: async ({ key }) => (await read(key)) !== undefined,
    async end({ key }) {
      await keyValues.remove(key);
      await pubsub.publish(channel, key).catch(() => {}); // the other instances notice it when they ask for the session
    },
    onEnd: (listener) => void pubsub.subscribe(channel, listener),
  };
}

const keyOf = (id: string) => `operator-session:${sha256(id)}`;
