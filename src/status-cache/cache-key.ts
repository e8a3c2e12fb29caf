/** Cache keys: the payment that a response belongs to, and the variant of the request that it answers. */

import { createHmac, hash, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { headerValues } from '../pis/headers.ts';
import { currentTenantId, identitiesOf } from '../request/identities.ts';
import type { RoutedRequest } from '../request/messages.ts';
import type { State } from '../state/ports.ts';
import { type CacheFields, credentialFields, variantFields } from './cache-fields.ts';

/** Contains no readable part of the request. */
export interface CacheKey {
  /** The key of the payment in the shared state. */
  readonly paymentKey: string;
  /** A keyed hash of everything else that a response may depend on, including the credentials. */
  readonly variant: string;
  /** A keyed hash of the credentials only, to delete responses when the bank refuses them. */
  readonly credential: string;
}

type Variant = Pick<CacheKey, 'variant' | 'credential'>;

export interface CacheKeys {
  /** `undefined` if the installation's secret is not known yet: see `refreshSecret`. */
  of(request: RoutedRequest, fields: CacheFields): CacheKey | undefined;
  /** Reads the secret, which another instance may have rotated, or generates it. @throws GatewayError STATE_UNAVAILABLE */
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
  const payment = `${environmentId}\0${paymentId}`;
  const cached = cachedPaymentKeys.get(payment);
  if (cached !== undefined) return cached;
  const key = `status:${hash('sha256', payment, 'base64url')}`;
  cachedPaymentKeys.set(payment, key);
  return key;
}

/** TPPs poll: the hash of a payment is computed once, not once per read. About 250 bytes each. */
const cachedPaymentKeys = new LRUCache<string, string>({ max: 10_000 });

/** One for each caller and token, whatever the payment. About 3 KB each, if a token is a JWT. */
const maxCachedVariants = 2_000;

const secretKey = 'status:secret';
const channel = 'status-secret';
const generateSecret = () => randomBytes(32).toString('base64');
/** Any other value was not written by a gateway, and is replaced. */
const isSecret = /^[\w+/]{43}=$/;

/** Cache keys under a secret of the installation. The first instance generates it and stores it in the shared state. */
export function createCacheKeys({ keyValues, pubsub }: Pick<State, 'keyValues' | 'pubsub'>): CacheKeys {
  let secret: string | undefined;
  /**
   * A cache, because two HMACs cost more than the rest of a cache hit. Its keys are the secret and all hashed values, one per
   * line: no value can contain a line break.
   */
  const variants = new LRUCache<string, Variant>({ max: maxCachedVariants });
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

  function variantOf(known: string, request: RoutedRequest, { keyText }: CacheFields): Variant {
    const tenantId = currentTenantId(request);
    const { paymentService, paymentProduct } = request.operation;
    const text = `${known}\n${tenantId}\n${paymentService}\n${paymentProduct}${keyText}`;
    const cached = variants.get(text);
    if (cached) return cached;
    const values = (name: string) => headerValues(request.headers, name).join('\n');
    const keyedHash = createKeyedHash(known);
    const credential = keyedHash([tenantId, ...credentialFields.map(values)]);
    const variant = keyedHash([credential, paymentService, paymentProduct, ...variantFields.map(values)]);
    const computed = { variant, credential };
    variants.set(text, computed);
    return computed;
  }

  return {
    refreshSecret,
    rotateSecret,
    of(request, fields) {
      if (secret === undefined) return undefined;
      const { variant, credential } = variantOf(secret, request, fields);
      return { paymentKey: paymentKeyIn(request), variant, credential };
    },
  };
}

/** The key of the payment of a request. */
export const paymentKeyIn = (request: RoutedRequest): string =>
  paymentKeyOf(
    identitiesOf(request).environmentIdOf(request.environment.name),
    request.operation.paymentId ?? '',
  );

const createKeyedHash = (secret: string) => (parts: readonly string[]) =>
  createHmac('sha256', secret).update(JSON.stringify(parts)).digest('base64url').slice(0, 22);
