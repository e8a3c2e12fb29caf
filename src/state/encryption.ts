/** Encrypts stored values so that a value can still be compared and replaced (ADR 30), and reads the keys for it. */

import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type EncryptionKeys, parseEncryptionKeys } from '../config/encryption-keys.ts';
import type { KeyValues } from './ports.ts';

/**
 * Encrypts values before they are stored, each one bound to its key in the store.
 *
 * Values from before encryption was switched on, and values under older keys, can be read and replaced. A value that
 * cannot be decrypted is returned as stored, so that readers treat it as garbage and can replace it.
 */
export function encryptKeyValues(keyValues: KeyValues, keys: EncryptionKeys): KeyValues {
  const { encrypt, decrypt } = createTextEncryption(keys);

  /** The stored value is usually encrypted with the current key; otherwise this reads it and replaces exactly that text. */
  async function replace(name: string, expected: string, value: string, ttlMs?: number): Promise<boolean> {
    const next = encrypt(name, value);
    const replaceText = (text: string) => keyValues.replace(name, text, next, ttlMs);
    if (await replaceText(encrypt(name, expected))) return true;
    const stored = await keyValues.read(name);
    if (stored === undefined || decrypt(name, stored) !== expected.toWellFormed()) return false;
    if (await replaceText(stored)) return true;
    // A concurrent write has replaced the text, perhaps by the same text under another key.
    return replace(name, expected, value, ttlMs);
  }

  async function removeIf(name: string, expected: string): Promise<boolean> {
    if (await keyValues.removeIf(name, encrypt(name, expected))) return true;
    const stored = await keyValues.read(name);
    if (stored === undefined || decrypt(name, stored) !== expected.toWellFormed()) return false;
    if (await keyValues.removeIf(name, stored)) return true;
    return removeIf(name, expected); // as above
  }

  return {
    async read(name) {
      const stored = await keyValues.read(name);
      return stored === undefined ? undefined : decrypt(name, stored);
    },
    write: (name, value, ttlMs) => keyValues.write(name, encrypt(name, value), ttlMs),
    writeIfAbsent: (name, value, ttlMs) => keyValues.writeIfAbsent(name, encrypt(name, value), ttlMs),
    replace,
    remove: keyValues.remove,
    removeIf,
  };
}

/**
 * Encrypts texts with the first key, each one bound to its name. A text that none of the keys decrypts is returned as it is stored.
 * Without a key, all texts stay as they are.
 */
export function createTextEncryption(keys: readonly [] | EncryptionKeys) {
  const ciphers = keys.map(createTextCipher);
  const [current] = ciphers;
  return {
    encrypt: (name: string, text: string): string => current?.encrypt(name, text) ?? text,
    decrypt(name: string, stored: string): string {
      for (const cipher of ciphers) {
        const text = cipher.decrypt(name, stored);
        if (text !== undefined) return text;
      }
      return stored;
    },
  };
}

/** Encryption with one key. It is deterministic: equal texts under the same name give equal results. */
interface TextCipher {
  encrypt(name: string, text: string): string;
  /** `undefined` if the text was encrypted with another key or under another name, or has been modified. */
  decrypt(name: string, encrypted: string): string | undefined;
}

/** Prefix of an encrypted text; a later format gets another number. */
const prefix = 'sealed:1:';

const algorithm = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;

/**
 * AES-256-GCM with the name as additional data. The nonce is derived from name and text: 96 bits of an HMAC under a key of
 * its own, following the idea of RFC 5297. HKDF (RFC 5869) derives both keys from the one in the file.
 */
function createTextCipher(key: Buffer): TextCipher {
  const derive = (use: string) => Buffer.from(hkdfSync('sha256', key, '', `penstock state 1 ${use}`, 32));
  const [textKey, nonceKey] = [derive('text'), derive('nonce')];

  /** The length of the name is hashed as well, so that moving its end changes the nonce. */
  const nonceOf = (name: Buffer, text: Buffer) => {
    const hash = createHmac('sha256', nonceKey).update(`${name.length}:`).update(name).update(text);
    return hash.digest().subarray(0, nonceBytes);
  };

  return {
    encrypt(name, text) {
      const [nameBytes, textBytes] = [Buffer.from(name), Buffer.from(text)]; // lone surrogates become U+FFFD
      const nonce = nonceOf(nameBytes, textBytes);
      const cipher = createCipheriv(algorithm, textKey, nonce, { authTagLength: tagBytes }).setAAD(nameBytes);
      const encrypted = [cipher.update(textBytes), cipher.final()];
      return prefix + Buffer.concat([nonce, ...encrypted, cipher.getAuthTag()]).toString('base64url');
    },
    decrypt(name, encrypted) {
      if (!encrypted.startsWith(prefix)) return undefined;
      const bytes = Buffer.from(encrypted.slice(prefix.length), 'base64url');
      if (bytes.length < nonceBytes + tagBytes) return undefined;
      const nonce = bytes.subarray(0, nonceBytes);
      const decipher = createDecipheriv(algorithm, textKey, nonce, { authTagLength: tagBytes })
        .setAAD(Buffer.from(name))
        .setAuthTag(bytes.subarray(-tagBytes));
      const text = decipher.update(bytes.subarray(nonceBytes, -tagBytes));
      try {
        return Buffer.concat([text, decipher.final()]).toString();
      } catch {
        return undefined; // another key or name, or modified
      }
    },
  };
}

/** Reads the keys. @throws Error that says what to change; it quotes nothing of the file */
export function readEncryptionKeys(file: string): EncryptionKeys {
  try {
    return parseEncryptionKeys(readFileSync(file, 'utf8'));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`state.encryptionKeyFile: ${file}: ${why}`, { cause });
  }
}
