/** Where an answer is kept: under which payment, and under which variant of the request. */

import { createHmac, hash, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { headerValues, lowerCase } from '../pis/headers.ts';
import type { RoutedRequest } from '../request/messages.ts';
import type { State } from '../state/ports.ts';
import { credentialFields, keyedFields, variantFields } from './cache-control.ts';

export interface CacheKey {
  /** The key of the payment's document; the id itself does not stand in it. */
  readonly key: string;
  /** Everything that an answer may depend on, credentials included, as one keyed hash. */
  readonly variant: string;
  /** The credentials alone, as a keyed hash: what is dropped when the bank refuses them. */
  readonly credential: string;
}

export interface CacheKeys {
  /** @throws GatewayError STATE_UNAVAILABLE if the installation's secret is not known yet and cannot be read */
  of(request: RoutedRequest): Promise<CacheKey>;
  /** Looks whether another instance has taken a new secret. @throws GatewayError STATE_UNAVAILABLE */
  refreshSecret(): Promise<void>;
  /** Takes a new secret: nothing that was kept is found again. @throws GatewayError STATE_UNAVAILABLE */
  rotateSecret(): Promise<void>;
}

const maxMemoizedKeys = 2_000;

const secretKey = 'status:secret';
const channel = 'status-secret';
const newSecret = () => randomBytes(32).toString('base64');
/** What else stands there is not ours: another one is taken. */
const isSecret = /^[\w+/]{43}=$/;

/** The key of a payment's document. Nothing a path or a header held is readable in it. */
export function paymentKeyOf(environment: string, paymentId: string): string {
  return `status:${hash('sha256', `${environment}\0${paymentId}`, 'base64url')}`;
}

/** Places under a secret of the installation, made by whoever comes first and kept in the state. */
export function createCacheKeys({ keyValues, pubsub }: Pick<State, 'keyValues' | 'pubsub'>): CacheKeys {
  let secret: string | undefined;
  /**
   * Who polls asks the same again and again: hashing costs more than all the rest of a hit. By the secret and all that the
   * hashes are made of, each on lines of its own: none of it can hold a line break.
   */
  const memoized = new LRUCache<string, CacheKey>({ max: maxMemoizedKeys });
  pubsub.subscribe(channel, () => void refreshSecret().catch(() => {})); // the next regular look sees it

  async function refreshSecret(): Promise<void> {
    const known = secret;
    const stored = await keyValues.read(secretKey);
    if (secret !== known) return; // renewed meanwhile: what was read may be older
    if (stored !== undefined && !isSecret.test(stored)) return rotateSecret();
    const made = newSecret();
    if (stored !== undefined) secret = stored;
    else if (await keyValues.writeIfAbsent(secretKey, made)) secret = made;
    else await refreshSecret();
  }

  async function rotateSecret(): Promise<void> {
    const made = newSecret();
    await keyValues.write(secretKey, made);
    secret = made;
    await pubsub.publish(channel, '').catch(() => {});
  }

  return {
    refreshSecret,
    rotateSecret,
    async of({ operation, environment, client, headers }) {
      if (secret === undefined) await refreshSecret();
      const { paymentService, paymentProduct, paymentId = '' } = operation;
      let question = [
        secret,
        environment.name,
        client.tenant,
        paymentService,
        paymentProduct,
        paymentId,
      ].join('\n');
      for (const [field, value] of headers) {
        const name = lowerCase(field);
        if (keyedFields.has(name)) question += `\n${name}:${value}`;
      }
      const known = memoized.get(question);
      if (known) return known;

      const values = (name: string) => headerValues(headers, name).join('\n');
      const credentials = [client.tenant, ...credentialFields.map(values)];
      const variants = [paymentService, paymentProduct, ...variantFields.map(values)];
      const hashed = hashUnder(secret ?? '');
      const credential = hashed(credentials);
      const key = paymentKeyOf(environment.name, paymentId);
      const place = { key, variant: hashed([credential, ...variants]), credential };
      memoized.set(question, place);
      return place;
    },
  };
}

/** Short hashes of lists of texts, which tell nobody without the secret what was hashed. */
const hashUnder = (secret: string) => (parts: readonly string[]) =>
  createHmac('sha256', secret).update(JSON.stringify(parts)).digest('base64url').slice(0, 22);
