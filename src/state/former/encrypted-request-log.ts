/** Encrypts the request log before it is stored. Its index is not encrypted: it contains 32 bits of hashes only. */

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { EncryptionKeys } from '../../config/encryption-keys.ts';
import type { RequestLog } from '../ports.ts';

/**
 * Encrypts chunks and values, each bound to its slice, values also to their names.
 *
 * Bytes from before encryption was switched on, and those under older keys, can be read. What cannot be decrypted is read as if
 * it did not exist.
 */
export function encryptRequestLog(log: RequestLog, [current, ...older]: EncryptionKeys): RequestLog {
  const cipher = createBytesCipher(current);
  const ciphers = [cipher, ...older.map(createBytesCipher)];

  function decrypt(name: string, stored: Buffer): Buffer | undefined {
    if (stored[0] !== marker) return stored;
    for (const { decrypt } of ciphers) {
      const bytes = decrypt(name, stored);
      if (bytes) return bytes;
    }
    return undefined;
  }

  return {
    ...log,
    append: (slice, write) =>
      log.append(slice, {
        ...write,
        chunk: write.chunk && cipher.encrypt(chunkName(slice), write.chunk),
        values: write.values.map(({ group, name, value }) => {
          return { group, name, value: cipher.encrypt(valueName(slice, group, name), value) };
        }),
      }),
    async readChunks(slice, positions) {
      const chunks = await log.readChunks(slice, positions);
      return chunks.map((chunk) => chunk && decrypt(chunkName(slice), chunk));
    },
    async readValues(slice, group) {
      const values = [...(await log.readValues(slice, group))];
      return new Map(
        values.flatMap(([name, stored]) => {
          const value = decrypt(valueName(slice, group, name), stored);
          return value ? [[name, value] as const] : [];
        }),
      );
    },
  };
}

const chunkName = (slice: number) => `chunk ${slice}`;
const valueName = (slice: number, group: string, name: string) => `${group} ${slice} ${name}`;

interface BytesCipher {
  encrypt(name: string, bytes: Buffer): Buffer;
  /** `undefined` if the bytes were encrypted with another key or under another name, or have been modified. */
  decrypt(name: string, stored: Buffer): Buffer | undefined;
}

/** The first byte of encrypted bytes. No chunk and no value begins with it: their first byte is the version of their format. */
const marker = 0xec;

const algorithm = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;

/** AES-256-GCM with the name as additional data and a random nonce: nothing here is compared in its encrypted form. */
function createBytesCipher(key: Buffer): BytesCipher {
  const derived = Buffer.from(hkdfSync('sha256', key, '', 'penstock state 1 request log', 32));
  return {
    encrypt(name, bytes) {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv(algorithm, derived, nonce, { authTagLength: tagBytes });
      cipher.setAAD(Buffer.from(name));
      const encrypted = [cipher.update(bytes), cipher.final()];
      return Buffer.concat([Buffer.from([marker]), nonce, ...encrypted, cipher.getAuthTag()]);
    },
    decrypt(name, stored) {
      const start = 1 + nonceBytes;
      if (stored.length < start + tagBytes) return undefined;
      const decipher = createDecipheriv(algorithm, derived, stored.subarray(1, start), {
        authTagLength: tagBytes,
      });
      decipher.setAAD(Buffer.from(name)).setAuthTag(stored.subarray(-tagBytes));
      const bytes = decipher.update(stored.subarray(start, -tagBytes));
      try {
        return Buffer.concat([bytes, decipher.final()]);
      } catch {
        return undefined; // another key or name, or modified
      }
    },
  };
}
