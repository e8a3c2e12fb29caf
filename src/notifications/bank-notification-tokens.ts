/**
 * The tokens in the URIs at which a bank notifies the gateway. A token contains the time, a random id and a MAC, so that a forged or
 * expired one is recognised without the database (ADR 108).
 */

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { createTextEncryption } from '../state/encryption.ts';
import type { BankNotificationTable } from '../store/bank-notifications.ts';

export interface BankNotificationToken {
  /** Never log it: with it, anyone can make the gateway read a status. */
  readonly text: string;
  /** Under this id, the payment is stored after the bank's response. */
  readonly id: string;
}

export interface VerifiedToken {
  readonly id: string;
  /** The identity of the environment. */
  readonly environmentId: string;
}

export interface BankNotificationTokens {
  /** @returns `undefined` while the secret could not be read */
  create(environmentId: string): BankNotificationToken | undefined;
  /**
   * @param environmentIds the environments whose tokens are accepted
   * @returns `undefined` if the token is forged, expired, or that of another environment; `unavailable` while the secret could not be read
   */
  verify(text: string, environmentIds: readonly string[]): VerifiedToken | 'unavailable' | undefined;
  /** Reads the secret, or generates it. @throws DatabaseError */
  refresh(): Promise<void>;
}

interface BankNotificationTokensDependencies {
  readonly table: Pick<BankNotificationTable, 'readSecret' | 'writeSecret'>;
  readonly encryption: ReturnType<typeof createTextEncryption>;
  /** `notifications.keepFor`: how long a token is valid. */
  readonly keepForMs: () => number;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** What the encryption is bound to. */
const secretName = 'bank notification secret';
const secretForm = /^[\w+/]{43}=$/;

const timeBytes = 4;
const idBytes = 16;
const macBytes = 16;
/** The number of bytes is a multiple of three, so base64url has no padding, and each token has exactly one form. */
const tokenForm = new RegExp(`^[\\w-]{${((timeBytes + idBytes + macBytes) / 3) * 4}}$`);

/** How far in the future the time of a token may be: the clocks of the instances differ. Milliseconds. */
const maxClockSkewMs = 60_000;

export function createBankNotificationTokens({
  table,
  encryption,
  keepForMs,
  now = Date.now,
}: BankNotificationTokensDependencies): BankNotificationTokens {
  let secret: string | undefined;

  async function refresh(): Promise<void> {
    const stored = await table.readSecret();
    const known = stored === undefined ? undefined : encryption.decrypt(secretName, stored);
    if (stored !== undefined && known !== undefined && secretForm.test(known)) {
      const isFirst = secret === undefined;
      secret = known;
      if (isFirst) await table.writeSecret(stored, encryption.encrypt(secretName, known)); // with the newest key
      return;
    }
    // Other instances have another encryption key, perhaps until they are restarted: to replace it would end all tokens.
    if (stored !== undefined && secret !== undefined) return;
    const generated = randomBytes(32).toString('base64');
    // A stored one cannot be decrypted.
    if (await table.writeSecret(stored, encryption.encrypt(secretName, generated))) secret = generated;
    else await refresh();
  }

  return {
    refresh,
    create(environmentId) {
      if (secret === undefined) return undefined;
      const time = Buffer.alloc(timeBytes);
      time.writeUInt32BE(Math.floor(now() / 1_000));
      const id = randomBytes(idBytes);
      const content = Buffer.concat([time, id]);
      const text = Buffer.concat([content, macOf(secret, environmentId, content)]).toString('base64url');
      return { text, id: id.toString('base64url') };
    },
    verify(text, environmentIds) {
      if (!tokenForm.test(text)) return undefined;
      if (secret === undefined) return 'unavailable';
      const known = secret;
      const bytes = Buffer.from(text, 'base64url');
      const content = bytes.subarray(0, timeBytes + idBytes);
      const mac = bytes.subarray(timeBytes + idBytes);
      const ageMs = now() - content.readUInt32BE() * 1_000;
      const isValid = (environmentId: string) => timingSafeEqual(macOf(known, environmentId, content), mac);
      const environmentId = environmentIds.find(isValid);
      if (environmentId === undefined || ageMs < -maxClockSkewMs || ageMs > keepForMs()) return undefined;
      return { id: content.subarray(timeBytes).toString('base64url'), environmentId };
    },
  };
}

/** The environment is an input of the MAC, so that tokens of environments that no longer receive notifications are refused. */
const macOf = (secret: string, environmentId: string, content: Buffer): Buffer =>
  createHmac('sha256', secret)
    .update(`bank notification\n${environmentId}\n`)
    .update(content)
    .digest()
    .subarray(0, macBytes);
