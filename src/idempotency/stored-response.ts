/** The bank's response in the columns of the ledger. With an encryption key, status apart, everything is encrypted. */

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { EncryptionKeys } from '../config/encryption-keys.ts';
import type { PisResponse } from '../request/messages.ts';
import type { LedgerRow } from '../store/ledger.ts';

export interface StoredResponse {
  readonly status: number;
  /** JSON: the fields, or the id of the key that they are encrypted with. */
  readonly headers: string;
  readonly body: Buffer;
}

export interface ResponseColumns {
  /** @param attempt which the encrypted response is bound to */
  write(attempt: string, response: PisResponse): StoredResponse;
  /**
   * @param environment the name of the environment that the request was sent to
   * @returns `undefined` if it cannot be read, for example because its key is missing
   */
  read(row: LedgerRow, environment: string): PisResponse | undefined;
}

const fieldsShape = z.object({
  fields: z.array(z.tuple([z.string(), z.string()]).readonly()).readonly(),
  publicUrl: z.string().optional(),
});
const sealedShape = z.object({ key: z.string() });

/** @param keys the current key encrypts; the older ones decrypt */
export function createResponseColumns(keys: readonly [] | EncryptionKeys = []): ResponseColumns {
  const ciphers = keys.map(createCipher);
  const [current] = ciphers;

  /** The JSON of the headers, and the body. */
  function open(row: LedgerRow): readonly [headers: string, body: Buffer] | undefined {
    const headers = String(row.headers);
    const body = bytesOf(row.body);
    const sealed = sealedShape.safeParse(parsed(headers));
    if (!sealed.success) return [headers, body];
    const plain = ciphers.find(({ id }) => id === sealed.data.key)?.decrypt(String(row.attempt), body);
    if (!plain) return undefined;
    const bodyAt = headerBytes + plain.readUInt32BE(0);
    return [plain.toString('utf8', headerBytes, bodyAt), plain.subarray(bodyAt)];
  }

  return {
    write(attempt, { status, headers: fields, body, publicUrl }) {
      const headers = JSON.stringify({ fields, publicUrl });
      if (!current) return { status, headers, body };
      const plain = Buffer.concat([lengthOf(headers), Buffer.from(headers), body]);
      return { status, headers: JSON.stringify({ key: current.id }), body: current.encrypt(attempt, plain) };
    },
    read(row, environment) {
      const [headers, body] = open(row) ?? [];
      const content = headers === undefined ? undefined : fieldsShape.safeParse(parsed(headers)).data;
      if (!content || !body) return undefined;
      const { fields, publicUrl } = content;
      const response = { status: Number(row.status), headers: fields, body, environment };
      return { ...response, servedFrom: 'ledger', ...(publicUrl !== undefined && { publicUrl }) };
    },
  };
}

/** Of the number in front of the encrypted headers: their length. */
const headerBytes = 4;

function lengthOf(text: string): Buffer {
  const bytes = Buffer.alloc(headerBytes);
  bytes.writeUInt32BE(Buffer.byteLength(text));
  return bytes;
}

/** SQLite returns an `Uint8Array`. */
function bytesOf(value: unknown): Buffer {
  return value instanceof Uint8Array ? Buffer.from(value) : Buffer.alloc(0);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const algorithm = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;

/** AES-256-GCM with a random nonce, and the attempt as additional data. HKDF (RFC 5869) derives the key, and its public id. */
function createCipher(fileKey: Buffer) {
  const derive = (use: string, bytes: number) =>
    Buffer.from(hkdfSync('sha256', fileKey, '', `penstock response 1 ${use}`, bytes));
  const key = derive('key', 32);
  return {
    id: derive('id', 6).toString('base64url'),
    encrypt(attempt: string, plain: Buffer): Buffer {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes }).setAAD(
        Buffer.from(attempt),
      );
      return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
    },
    /** @returns `undefined` if it was modified */
    decrypt(attempt: string, sealed: Buffer): Buffer | undefined {
      if (sealed.length < nonceBytes + tagBytes) return undefined;
      const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, nonceBytes), {
        authTagLength: tagBytes,
      })
        .setAAD(Buffer.from(attempt))
        .setAuthTag(sealed.subarray(-tagBytes));
      const plain = decipher.update(sealed.subarray(nonceBytes, -tagBytes));
      try {
        return Buffer.concat([plain, decipher.final()]);
      } catch {
        return undefined;
      }
    },
  };
}
