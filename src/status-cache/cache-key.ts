/** Cache keys: the payment that a response belongs to, and the variant of the request that it answers. */

import { createHmac, hash, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { headerValues } from '../pis/headers.ts';
import { currentTenantId, identitiesOf } from '../request/identities.ts';
import type { RoutedRequest } from '../request/messages.ts';
import { statusTagOf } from '../request/status-tag.ts';
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
  /**
   * The `ETag` of a status: a keyed hash over tenant, payment and status. `undefined` as `of`.
   *
   * @param statusHash equal for equal statuses of the payment
   */
  tagOf(request: RoutedRequest, paymentKey: string, statusHash: string): string | undefined;
  /** Reads the secret, which another instance may have rotated, or generates it. @throws GatewayError STATE_UNAVAILABLE */
  refreshSecret(): Promise<void>;
  /** Replaces the secret: all cached responses become unreachable. @throws GatewayError STATE_UNAVAILABLE */
  rotateSecret(): Promise<void>;
  /**
   * Changes the secret of one environment: its cached responses become unreachable.
   *
   * @param environmentId the identity of the environment
   * @throws GatewayError STATE_UNAVAILABLE
   */
  rotateSecretOf(environmentId: string): Promise<void>;
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

/** The secret as it is stored, and parsed. */
interface StoredSecret {
  readonly raw: string;
  /** For the environments without a salt. */
  readonly common: string;
  /** By identity of the environment; only environments that were purged have one. */
  readonly salts: ReadonlyMap<string, string>;
}

const saltsShape = z.record(z.string(), z.string());

/** `SECRET`, or `SECRET SALTS` with the salts in JSON. Any other value was not written by a gateway, and is replaced. */
function parseSecret(raw: string): StoredSecret | undefined {
  const [, common, json = '{}'] = /^([\w+/]{43}=)(?: (\{.*\}))?$/.exec(raw) ?? [];
  if (common === undefined) return undefined;
  try {
    return { raw, common, salts: new Map(Object.entries(saltsShape.parse(JSON.parse(json)))) };
  } catch {
    return undefined;
  }
}

const newSecret = (): StoredSecret => {
  const common = generateSecret();
  return { raw: common, common, salts: new Map() };
};

function withSalt({ common, salts }: StoredSecret, environmentId: string): StoredSecret {
  const next = new Map(salts).set(environmentId, generateSecret());
  return { raw: `${common} ${JSON.stringify(Object.fromEntries(next))}`, common, salts: next };
}

function secretFor({ common, salts }: StoredSecret, environmentId: string): string {
  const salt = salts.get(environmentId);
  return salt === undefined ? common : common + salt;
}

/** Cache keys under a secret of the installation. The first instance generates it and stores it in the shared state. */
export function createCacheKeys({ keyValues, pubsub }: Pick<State, 'keyValues' | 'pubsub'>): CacheKeys {
  let secret: StoredSecret | undefined;
  /**
   * A cache, because two HMACs cost more than the rest of a cache hit. Its keys are the secret and all hashed values, one per
   * line: no value can contain a line break.
   */
  const variants = new LRUCache<string, Variant>({ max: maxCachedVariants });
  pubsub.subscribe(channel, () => void refreshSecret().catch(() => {})); // the next regular refresh retries

  async function refreshSecret(): Promise<void> {
    const before = secret;
    const raw = await keyValues.read(secretKey);
    if (secret !== before) return; // rotated during the read, which may have returned the old one
    if (raw === secret?.raw && raw !== undefined) return;
    const stored = raw === undefined ? undefined : parseSecret(raw);
    if (raw !== undefined && !stored) return rotateSecret();
    const generated = newSecret();
    if (stored) secret = stored;
    else if (await keyValues.writeIfAbsent(secretKey, generated.raw)) secret = generated;
    else await refreshSecret();
  }

  async function rotateSecret(): Promise<void> {
    const generated = newSecret();
    await keyValues.write(secretKey, generated.raw);
    await use(generated);
  }

  async function rotateSecretOf(environmentId: string): Promise<void> {
    const raw = await keyValues.read(secretKey);
    const stored = raw === undefined ? undefined : parseSecret(raw);
    if (!stored) return rotateSecret();
    const salted = withSalt(stored, environmentId);
    if (await keyValues.replace(secretKey, stored.raw, salted.raw)) return use(salted);
    return rotateSecretOf(environmentId); // another instance has changed it
  }

  async function use(changed: StoredSecret): Promise<void> {
    secret = changed;
    await pubsub.publish(channel, '').catch(() => {});
  }

  function variantOf(known: string, request: RoutedRequest, { keyText }: CacheFields): Variant {
    const tenantId = currentTenantId(request);
    const { paymentService, paymentProduct, search } = request.operation;
    const { callerHeaders } = request.environment;
    const text = `${known}\n${callerHeaders}\n${tenantId}\n${paymentService}\n${paymentProduct}\n${search}${keyText}`;
    const cached = variants.get(text);
    if (cached) return cached;
    const values = (name: string) => headerValues(request.headers, name).join('\n');
    const keyedHash = createKeyedHash(known);
    const credential = keyedHash([
      tenantId,
      ...credentialFields.map(values),
      ...callerHeaders.flatMap((name) => [name, values(name)]),
    ]);
    const variant = keyedHash([
      credential,
      paymentService,
      paymentProduct,
      search,
      ...variantFields.map(values),
    ]);
    const computed = { variant, credential };
    variants.set(text, computed);
    return computed;
  }

  return {
    refreshSecret,
    rotateSecret,
    rotateSecretOf,
    of(request, fields) {
      if (secret === undefined) return undefined;
      const environmentId = environmentIdIn(request);
      const { variant, credential } = variantOf(secretFor(secret, environmentId), request, fields);
      return {
        paymentKey: paymentKeyOf(environmentId, request.operation.paymentId ?? ''),
        variant,
        credential,
      };
    },
    tagOf(request, paymentKey, statusHash) {
      if (secret === undefined) return undefined;
      const keyedHash = createKeyedHash(secretFor(secret, environmentIdIn(request)));
      return statusTagOf(keyedHash(['etag', currentTenantId(request), paymentKey, statusHash]));
    },
  };
}

/** The key of the payment of a request. */
export const paymentKeyIn = (request: RoutedRequest): string =>
  paymentKeyOf(environmentIdIn(request), request.operation.paymentId ?? '');

const environmentIdIn = (request: RoutedRequest) =>
  identitiesOf(request).environmentIdOf(request.environment.name);

const createKeyedHash = (secret: string) => (parts: readonly string[]) =>
  createHmac('sha256', secret).update(JSON.stringify(parts)).digest('base64url').slice(0, 22);
