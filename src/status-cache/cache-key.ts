/** Cache keys: the payment that a response belongs to, and the variant of the request that it answers. */

import { createHmac, hash, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { headerValues, lowerCase } from '../pis/headers.ts';
import { currentTenantId, identitiesOf } from '../request/identities.ts';
import type { RoutedRequest } from '../request/messages.ts';
import type { State } from '../state/ports.ts';

/** Request fields that identify the caller: a cached response belongs to these credentials. */
export const credentialFields = ['authorization', 'cookie'] as const;

/** Further request fields that a response may vary with. */
const variantFields = [
  'accept',
  'accept-encoding',
  'accept-language',
  'consent-id',
  'psu-id',
  'psu-id-type',
  'psu-corporate-id',
  'psu-corporate-id-type',
] as const;

/** All request fields that are part of a cache key. */
export const keyFields: ReadonlySet<string> = new Set([...credentialFields, ...variantFields]);

/** Contains no readable part of the request. */
export interface CacheKey {
  /** The key of the payment in the shared state. */
  readonly paymentKey: string;
  /** A keyed hash of everything else that a response may depend on, including the credentials. */
  readonly variant: string;
  /** A keyed hash of the credentials only, to delete responses when the bank refuses them. */
  readonly credential: string;
}

export interface CacheKeys {
  /** @throws GatewayError STATE_UNAVAILABLE if the installation's secret is not known yet and cannot be read */
  of(request: RoutedRequest): Promise<CacheKey>;
  /** Checks whether another instance has rotated the secret. @throws GatewayError STATE_UNAVAILABLE */
  refreshSecret(): Promise<void>;
  /** Replaces the secret: all cached responses become unreachable. @throws GatewayError STATE_UNAVAILABLE */
  rotateSecret(): Promise<void>;
}

/**
 * The key of a payment in the shared state: a hash, so that neither environment nor id are readable.
 *
 * @param environmentId the identity of the environment
 */
export function paymentKeyOf(environmentId: string, paymentId: string): string {
  return `status:${hash('sha256', `${environmentId}\0${paymentId}`, 'base64url')}`;
}

const maxMemoizedKeys = 2_000;

const secretKey = 'status:secret';
const channel = 'status-secret';
const generateSecret = () => randomBytes(32).toString('base64');
/** Any other value was not written by a gateway, and is replaced. */
const isSecret = /^[\w+/]{43}=$/;

/** Cache keys under a secret of the installation. The first instance generates it and stores it in the shared state. */
export function createCacheKeys({ keyValues, pubsub }: Pick<State, 'keyValues' | 'pubsub'>): CacheKeys {
  let secret: string | undefined;
  /**
   * TPPs that poll repeat the same request, and hashing costs more than the rest of a cache hit. Memoized by the secret
   * and all hashed values, one per line: none of them can contain a line break.
   */
  const memoized = new LRUCache<string, CacheKey>({ max: maxMemoizedKeys });
  pubsub.subscribe(channel, () => void refreshSecret().catch(() => {})); // the next regular refresh retries

  async function refreshSecret(): Promise<void> {
    const before = secret;
    const stored = await keyValues.read(secretKey);
    if (secret !== before) return; // rotated during the read, which may have returned the old one
    if (stored !== undefined && !isSecret.test(stored)) return rotateSecret();
    const generated = generateSecret();
    if (stored !== undefined) secret = stored;
    else if (await keyValues.writeIfAbsent(secretKey, generated)) secret = generated;
    else await refreshSecret();
  }

  async function rotateSecret(): Promise<void> {
    const generated = generateSecret();
    await keyValues.write(secretKey, generated);
    secret = generated;
    await pubsub.publish(channel, '').catch(() => {});
  }

  return {
    refreshSecret,
    rotateSecret,
    async of(request) {
      const { operation, environment, headers } = request;
      const environmentId = identitiesOf(request).environmentIdOf(environment.name);
      const tenantId = currentTenantId(request);
      if (secret === undefined) await refreshSecret();
      const { paymentService, paymentProduct, paymentId = '' } = operation;
      let hashedValues = [secret, environmentId, tenantId, paymentService, paymentProduct, paymentId].join(
        '\n',
      );
      for (const [field, value] of headers) {
        const name = lowerCase(field);
        if (keyFields.has(name)) hashedValues += `\n${name}:${value}`;
      }
      const known = memoized.get(hashedValues);
      if (known) return known;

      const values = (name: string) => headerValues(headers, name).join('\n');
      const keyedHash = createKeyedHash(secret ?? '');
      const credential = keyedHash([tenantId, ...credentialFields.map(values)]);
      const variant = keyedHash([credential, paymentService, paymentProduct, ...variantFields.map(values)]);
      const key = { paymentKey: paymentKeyOf(environmentId, paymentId), variant, credential };
      memoized.set(hashedValues, key);
      return key;
    },
  };
}

const createKeyedHash = (secret: string) => (parts: readonly string[]) =>
  createHmac('sha256', secret).update(JSON.stringify(parts)).digest('base64url').slice(0, 22);
