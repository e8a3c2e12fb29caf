/** Values that stand encrypted in the state, and can still be replaced if unchanged (ADR 30). */

import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import type { EncryptionKeys } from './encryption-keys.ts';
import type { KeyValues } from './ports.ts';

/** What a sealed text begins with; a later form takes another number. */
const marker = 'sealed:1:';

const cipher = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;

/** One key's way to seal texts: the same text under the same name is always sealed to the same. */
interface Seal {
  close(name: string, text: string): string;
  /** `undefined` if it was not closed by this key, under this name, or was changed since. */
  open(name: string, sealed: string): string | undefined;
}

/**
 * The same values, sealed before they are stored, each for its own name.
 *
 * Texts from before encryption was switched on, and those under older keys, are read and can be replaced; what cannot be
 * opened is read as it stands, so that it counts as garbage, and can be replaced, too.
 */
export function encrypted(keyValues: KeyValues, [current, ...older]: EncryptionKeys): KeyValues {
  const seal = sealBy(current);
  const seals = [seal, ...older.map(sealBy)];
  const opened = (name: string, stored: string) =>
    seals.reduce<string | undefined>((text, { open }) => text ?? open(name, stored), undefined) ?? stored;

  /** What stands there is as a rule sealed by the current key. If not so, it is read, and replaced as it stands. */
  async function replace(name: string, expected: string, value: string, ttlMs?: number): Promise<boolean> {
    const next = seal.close(name, value);
    if (await keyValues.replace(name, seal.close(name, expected), next, ttlMs)) return true;
    const stored = await keyValues.read(name);
    if (stored === undefined || opened(name, stored) !== expected.toWellFormed()) return false;
    if (await keyValues.replace(name, stored, next, ttlMs)) return true;
    return replace(name, expected, value, ttlMs); // somebody was faster, perhaps with the same text sealed anew
  }

  return {
    async read(name) {
      const stored = await keyValues.read(name);
      return stored === undefined ? undefined : opened(name, stored);
    },
    write: (name, value, ttlMs) => keyValues.write(name, seal.close(name, value), ttlMs),
    writeIfAbsent: (name, value, ttlMs) => keyValues.writeIfAbsent(name, seal.close(name, value), ttlMs),
    replace,
    remove: keyValues.remove,
  };
}

/**
 * AES-256-GCM, the name as additional data, under a nonce that is made of name and text: 96 bits of an HMAC under a key
 * of its own, after the idea of RFC 5297. Both keys are derived from the one in the file (RFC 5869).
 */
function sealBy(key: Buffer): Seal {
  const derived = (use: string) => Buffer.from(hkdfSync('sha256', key, '', `penstock state 1 ${use}`, 32));
  const [textKey, nonceKey] = [derived('text'), derived('nonce')];

  /** Where the name ends is part of what is hashed. */
  const nonceOf = (name: Buffer, text: Buffer) => {
    const hash = createHmac('sha256', nonceKey).update(`${name.length}:`).update(name).update(text);
    return hash.digest().subarray(0, nonceBytes);
  };

  return {
    close(name, text) {
      const [bound, bytes] = [Buffer.from(name), Buffer.from(text)]; // U+FFFD for half of a character
      const nonce = nonceOf(bound, bytes);
      const closing = createCipheriv(cipher, textKey, nonce, { authTagLength: tagBytes }).setAAD(bound);
      const closed = [closing.update(bytes), closing.final()];
      return marker + Buffer.concat([nonce, ...closed, closing.getAuthTag()]).toString('base64url');
    },
    open(name, sealed) {
      if (!sealed.startsWith(marker)) return undefined;
      const bytes = Buffer.from(sealed.slice(marker.length), 'base64url');
      if (bytes.length < nonceBytes + tagBytes) return undefined;
      const nonce = bytes.subarray(0, nonceBytes);
      const opening = createDecipheriv(cipher, textKey, nonce, { authTagLength: tagBytes })
        .setAAD(Buffer.from(name))
        .setAuthTag(bytes.subarray(-tagBytes));
      const text = opening.update(bytes.subarray(nonceBytes, -tagBytes));
      try {
        return Buffer.concat([text, opening.final()]).toString();
      } catch {
        return undefined; // another key, another name, or changed
      }
    },
  };
}
