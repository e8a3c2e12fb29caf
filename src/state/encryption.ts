/** Values that stand encrypted in the state, and can still be replaced if unchanged (ADR 30). */

import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { KeyValues } from './ports.ts';

/** What a sealed text begins with; a later form takes another number. */
const prefix = 'sealed:1:';

const algorithm = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;

/** One key's way to seal texts: the same text under the same name is always sealed to the same. */
interface TextCipher {
  encrypt(name: string, text: string): string;
  /** `undefined` if it was not closed by this key, under this name, or was changed since. */
  decrypt(name: string, sealed: string): string | undefined;
}

/**
 * The same values, sealed before they are stored, each for its own name.
 *
 * Texts from before encryption was switched on, and those under older keys, are read and can be replaced; what cannot be
 * opened is read as it stands, so that it counts as garbage, and can be replaced, too.
 */
export function encryptKeyValues(keyValues: KeyValues, [current, ...older]: EncryptionKeys): KeyValues {
  const seal = createTextCipher(current);
  const seals = [seal, ...older.map(createTextCipher)];
  const opened = (name: string, stored: string) =>
    seals.reduce<string | undefined>((text, { decrypt }) => text ?? decrypt(name, stored), undefined) ??
    stored;

  /** What stands there is as a rule sealed by the current key. If not so, it is read, and replaced as it stands. */
  async function replace(name: string, expected: string, value: string, ttlMs?: number): Promise<boolean> {
    const next = seal.encrypt(name, value);
    if (await keyValues.replace(name, seal.encrypt(name, expected), next, ttlMs)) return true;
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
    write: (name, value, ttlMs) => keyValues.write(name, seal.encrypt(name, value), ttlMs),
    writeIfAbsent: (name, value, ttlMs) => keyValues.writeIfAbsent(name, seal.encrypt(name, value), ttlMs),
    replace,
    remove: keyValues.remove,
  };
}

/**
 * AES-256-GCM, the name as additional data, under a nonce that is made of name and text: 96 bits of an HMAC under a key
 * of its own, after the idea of RFC 5297. Both keys are derived from the one in the file (RFC 5869).
 */
function createTextCipher(key: Buffer): TextCipher {
  const derived = (use: string) => Buffer.from(hkdfSync('sha256', key, '', `penstock state 1 ${use}`, 32));
  const [textKey, nonceKey] = [derived('text'), derived('nonce')];

  /** Where the name ends is part of what is hashed. */
  const nonceOf = (name: Buffer, text: Buffer) => {
    const hash = createHmac('sha256', nonceKey).update(`${name.length}:`).update(name).update(text);
    return hash.digest().subarray(0, nonceBytes);
  };

  return {
    encrypt(name, text) {
      const [bound, bytes] = [Buffer.from(name), Buffer.from(text)]; // U+FFFD for half of a character
      const nonce = nonceOf(bound, bytes);
      const closing = createCipheriv(algorithm, textKey, nonce, { authTagLength: tagBytes }).setAAD(bound);
      const closed = [closing.update(bytes), closing.final()];
      return prefix + Buffer.concat([nonce, ...closed, closing.getAuthTag()]).toString('base64url');
    },
    decrypt(name, sealed) {
      if (!sealed.startsWith(prefix)) return undefined;
      const bytes = Buffer.from(sealed.slice(prefix.length), 'base64url');
      if (bytes.length < nonceBytes + tagBytes) return undefined;
      const nonce = bytes.subarray(0, nonceBytes);
      const opening = createDecipheriv(algorithm, textKey, nonce, { authTagLength: tagBytes })
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

// MERGED HEADER (rewrite or remove):
/* The keys that values are encrypted with, as they stand in a file. */

/** Keys of 32 bytes: the current one, and older ones that are only read with. */
export type EncryptionKeys = readonly [current: Buffer, ...older: Buffer[]];

/**
 * Reads one key a line: 32 bytes in base64, or 64 hex digits. Blank lines and those that begin with # say nothing.
 *
 * @throws Error with a sentence that says what to change; it quotes nothing of the file
 */
export function readEncryptionKeys(file: string): EncryptionKeys {
  const lines = contentOf(file)
    .split('\n')
    .map((line, index) => ({ text: line.trim(), number: index + 1 }))
    .filter(({ text }) => text !== '' && !text.startsWith('#'));
  const keys = lines.map(({ text, number }) => keyIn(text) ?? fail(`line ${number} of ${file} is no key`));
  const [current, ...older] = keys;
  if (!current) return fail(`${file} holds no key`);
  const again = keys.findIndex((key, index) => keys.findIndex((other) => other.equals(key)) < index);
  const repeated = lines[again];
  if (repeated)
    throw new Error(
      `state.encryptionKeyFile: the key in line ${repeated.number} of ${file} stands there twice; remove one`,
    );
  return [current, ...older];
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`state.encryptionKeyFile: the file cannot be read (${why}); name a file that can`, {
      cause,
    });
  }
}

function keyIn(text: string): Buffer | undefined {
  if (/^[0-9A-Fa-f]{64}$/.test(text)) return Buffer.from(text, 'hex');
  if (/^[A-Za-z0-9+/]{43}=$/.test(text)) return Buffer.from(text, 'base64');
  return undefined;
}

function fail(what: string): never {
  throw new Error(
    `state.encryptionKeyFile: ${what}; write one key a line, 32 random bytes in base64 or 64 hex digits ` +
      '(openssl rand -base64 32)',
  );
}
