/** Sign-in with an OpenID Connect provider: the code flow with PKCE. Only this file knows openid-client. */

import {
  AuthorizationResponseError,
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  None,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from 'openid-client';
import type { AdminSettings } from '../config/schema.ts';
import type { Log } from '../telemetry/log.ts';
import type { AdminCredentials, Person } from './operators.ts';
import { createProviderFetch, ProviderUnavailable } from './provider-fetch.ts';

type OidcSettings = NonNullable<AdminSettings['oidc']>;

/** What the gateway remembers of a sign-in that has begun, and compares when the person comes back. */
export interface SignInAttempt {
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
}

/** A person that the provider has authenticated. */
export interface AuthenticatedPerson extends Person {
  /** Identifies the person at the provider, also after a change of name. */
  readonly subject: string;
}

export type SignInResult =
  | { readonly kind: 'signed-in'; readonly person: AuthenticatedPerson }
  /** The person or the provider has refused. */
  | { readonly kind: 'denied'; readonly why: string }
  | { readonly kind: 'unavailable'; readonly why: string }
  /** The response of the provider was not accepted. */
  | { readonly kind: 'failed'; readonly why: string };

export interface OidcProvider {
  /** Reads the provider's description if it is due; to be called every second. Never rejects. */
  refresh(): Promise<void>;
  /** @returns the URL to send the person to; `undefined` while the provider's description is not known */
  begin(redirectUri: string): Promise<{ readonly url: URL; readonly attempt: SignInAttempt } | undefined>;
  /** @param callbackUrl the redirect URI with the parameters that the provider has added */
  finish(callbackUrl: URL, attempt: SignInAttempt): Promise<SignInResult>;
}

/** The description changes rarely; keys are read again whenever an unknown one signs. */
const refreshMs = 60 * 60 * 1_000;
const [firstRetryMs, maxRetryMs] = [1_000, 10_000];

export function createOidcProvider(
  settings: OidcSettings,
  credentials: Pick<AdminCredentials, 'oidcClientSecret' | 'oidcCa'>,
  log: Log,
): OidcProvider {
  let configuration: Configuration | undefined;
  let dueAtMs = 0;
  let retryMs = firstRetryMs;
  let isReported = false;

  async function discover(): Promise<void> {
    try {
      const description = await readDescription(settings, credentials);
      if (isReported || !configuration)
        log('info', 'the OIDC provider is available', { issuer: settings.issuer });
      configuration = description;
      isReported = false;
      retryMs = firstRetryMs;
      dueAtMs = performance.now() + refreshMs;
    } catch (cause) {
      if (!isReported)
        log('error', 'the OIDC provider is unavailable; operators can still use tokens', {
          issuer: settings.issuer,
          why: reasonOf(cause),
        });
      isReported = true;
      dueAtMs = performance.now() + retryMs;
      retryMs = Math.min(retryMs * 2, maxRetryMs);
    }
  }

  return {
    async refresh() {
      if (performance.now() >= dueAtMs) await discover();
    },
    async begin(redirectUri) {
      if (!configuration) return undefined;
      const attempt = {
        state: randomState(),
        nonce: randomNonce(),
        codeVerifier: randomPKCECodeVerifier(),
      };
      const url = buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: settings.scopes.join(' '),
        state: attempt.state,
        nonce: attempt.nonce,
        code_challenge: await calculatePKCECodeChallenge(attempt.codeVerifier),
        code_challenge_method: 'S256',
      });
      return { url, attempt };
    },
    async finish(callbackUrl, attempt) {
      if (!configuration) return { kind: 'unavailable', why: 'its description is not known yet' };
      try {
        return {
          kind: 'signed-in',
          person: await authenticate(configuration, callbackUrl, attempt, settings),
        };
      } catch (cause) {
        const why = reasonOf(cause);
        if (cause instanceof AuthorizationResponseError) return { kind: 'denied', why };
        return { kind: isUnavailable(cause) ? 'unavailable' : 'failed', why };
      }
    },
  };
}

function readDescription(
  { issuer, clientId, clientAuthentication }: OidcSettings,
  { oidcClientSecret, oidcCa }: Pick<AdminCredentials, 'oidcClientSecret' | 'oidcCa'>,
): Promise<Configuration> {
  return discovery(
    new URL(issuer),
    clientId,
    undefined,
    clientAuthOf(clientAuthentication, oidcClientSecret),
    {
      // The configuration allows http: on loopback only. The signature of ID tokens is verified even if they come over TLS.
      execute: [enableNonRepudiationChecks, ...(issuer.startsWith('http:') ? [allowInsecureRequests] : [])],
      [customFetch]: createProviderFetch(oidcCa),
    },
  );
}

function clientAuthOf(method: OidcSettings['clientAuthentication'], secret: string | undefined): ClientAuth {
  if (secret === undefined) return None();
  return method === 'client_secret_post' ? ClientSecretPost(secret) : ClientSecretBasic(secret);
}

async function authenticate(
  configuration: Configuration,
  callbackUrl: URL,
  { state, nonce, codeVerifier }: SignInAttempt,
  { nameClaim, groupsClaim }: OidcSettings,
): Promise<AuthenticatedPerson> {
  const tokens = await authorizationCodeGrant(configuration, callbackUrl, {
    expectedState: state,
    expectedNonce: nonce,
    pkceCodeVerifier: codeVerifier,
    idTokenExpected: true,
  });
  const idClaims = tokens.claims();
  if (!idClaims) throw new Error('the provider sent no ID token');
  const isComplete = [nameClaim, groupsClaim].every((path) => claimAt(idClaims, path) !== undefined);
  const hasMore = !isComplete && configuration.serverMetadata().userinfo_endpoint !== undefined;
  const more = hasMore ? await fetchUserInfo(configuration, tokens.access_token, idClaims.sub) : {};
  const claims: Readonly<Record<string, unknown>> = { ...more, ...idClaims };
  const groups = [claimAt(claims, groupsClaim)].flat().filter((group) => typeof group === 'string');
  const name = [claimAt(claims, nameClaim), claims.email].find(
    (text) => typeof text === 'string' && text !== '',
  );
  return { subject: idClaims.sub, name: String(name ?? idClaims.sub), groups };
}

/** The claim of this name; otherwise the value at a path such as `realm_access.roles`. Names of claims may contain dots. */
function claimAt(claims: Readonly<Record<string, unknown>>, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  return path
    .split('.')
    .reduce<unknown>(
      (value, key) => (isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined),
      claims,
    );
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/** The library wraps the errors of the HTTP client. */
const isUnavailable = (thrown: unknown): boolean =>
  thrown instanceof ProviderUnavailable || (thrown instanceof Error && isUnavailable(thrown.cause));

/** The texts of the error and its causes; none of them contains a code, a token or a secret. */
function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  return thrown.cause instanceof Error ? `${thrown.message}: ${reasonOf(thrown.cause)}` : thrown.message;
}
