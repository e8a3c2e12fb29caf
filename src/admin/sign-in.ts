/** The handlers for signing in and out: a session by token, and by the OIDC provider. */

import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Response } from 'express';
import type { AuditRecorder } from '../request/audit-event.ts';
import type { Log } from '../telemetry/log.ts';
import { AdminRefusal } from './admin-refusal.ts';
import { operatorIfAny } from './authenticate-operator.ts';
import { type Cookie, readCookie, sessionCookie, signInCookie, writeCookie } from './cookies.ts';
import { type AuthenticatedPerson, createOidcProvider, type OidcProvider } from './oidc-provider.ts';
import { digestOf, holderOf, type OperatorAccess, type OperatorIdentity } from './operator-access.ts';
import { findByToken } from './operators.ts';
import { isSecure } from './request-origin.ts';
import type { AdminApi } from './routes.ts';
import type { SessionRecord, Sessions } from './sessions.ts';
import { createSignInThrottle, type SignInThrottle } from './sign-in-throttle.ts';

interface SignInDependencies {
  readonly access: OperatorAccess;
  readonly sessions: Sessions;
  /** Of wrong tokens. */
  readonly throttle: SignInThrottle;
  readonly audit: AuditRecorder;
  readonly log: Log;
}

export interface SignIn {
  readonly handlers: Pick<
    AdminApi,
    'getSession' | 'startSession' | 'endSession' | 'startOidcSignIn' | 'finishOidcSignIn'
  >;
  /** Reads the description of the OIDC provider if it is due; to be called every second. Never rejects. */
  refreshProvider(): Promise<void>;
}

/** Values of the parameter `signInError` with which the console is opened. */
type SignInError = 'provider-unavailable' | 'denied' | 'no-role' | 'expired' | 'failed';

/** How long a person may take to authenticate at the provider. */
const attemptTtlMs = 10 * 60 * 1_000;

export function createSignIn({ access, sessions, throttle, audit, log }: SignInDependencies): SignIn {
  const currentProvider = createProviderHolder(access, log);
  /** Of its own: wrong tokens must not prevent a sign-in at the provider. */
  const oidcThrottle = createSignInThrottle();

  const isSecureCall = ({ req }: Response) => isSecure(req, access.rules.settings.publicUrl);
  const cookieIn = (response: Response, cookie: Cookie) =>
    readCookie(response.req, cookie, isSecureCall(response));
  const setCookie = (response: Response, cookie: Cookie, value: string, maxAgeMs: number) =>
    void response.append(
      'Set-Cookie',
      writeCookie(cookie, value, Math.floor(maxAgeMs / 1_000), isSecureCall(response)),
    );

  /** Replaces the session of the browser, so that nobody can choose its id beforehand. */
  async function startSession(response: Response, record: SessionRecord): Promise<void> {
    const id = await sessions.start(record);
    setCookie(response, sessionCookie, id, record.expiresAtMs - Date.now());
  }

  const newExpiryMs = () => Date.now() + access.rules.settings.sessionTtl;

  function countAttempt(response: Response, { countFailure }: SignInThrottle): void {
    const seconds = countFailure(access.rules.proxies.clientAddress(response.req));
    if (seconds === 0) return;
    response.set('Retry-After', String(seconds));
    throw new AdminRefusal(429, `Too many attempts from this address; try again in ${seconds} s.`);
  }

  function requireProvider(): OidcProvider {
    const provider = currentProvider();
    if (provider) return provider;
    throw new AdminRefusal(404, 'Not found: sign-in with OIDC is not configured (admin.oidc).');
  }

  /** @param page of the console, as in `pageOf` */
  function consoleUrl(page: string, error?: SignInError): string {
    const url = new URL(`${access.rules.settings.publicUrl}${page}`);
    if (error) url.searchParams.set('signInError', error);
    return url.href;
  }

  /** Starts the session of a person that the provider has authenticated. @returns what prevents it */
  async function admit(person: AuthenticatedPerson, response: Response): Promise<SignInError | undefined> {
    const { oidc } = access.rules.settings;
    if (!oidc) return 'failed'; // a reload has removed it
    const { name, groups, subject } = person;
    const source = { method: 'oidc', issuer: oidc.issuer, clientId: oidc.clientId, groups } as const;
    const record = { name, expiresAtMs: newExpiryMs(), source };
    const holder = holderOf(record, access.rules);
    if (holder?.kind !== 'operator') {
      log('warn', 'sign-in refused: the person has no role', { who: holder?.name, signIn: 'oidc' });
      return 'no-role';
    }
    await startSession(response, record);
    await audit.record({
      who: holder.name,
      action: 'sign in',
      outcome: 'done',
      details: { method: 'oidc', role: holder.role, issuer: oidc.issuer, subject },
    });
    return undefined;
  }

  return {
    handlers: {
      getSession({ response }) {
        const operator = operatorIfAny(response);
        const credential = operator?.credential;
        const session = credential?.kind === 'session' ? credential.session : undefined;
        return viewSession(operator, session?.expiresAtMs, access);
      },

      async startSession({ body: { token }, response }) {
        const { operators } = access.rules.credentials;
        const found = findByToken(operators, token);
        if (!found) {
          countAttempt(response, throttle);
          throw new AdminRefusal(401, 'No operator has this token.');
        }
        const { name, role } = found;
        const source = { method: 'token', tokenDigest: digestOf(found) } as const;
        const record = { name, expiresAtMs: newExpiryMs(), source };
        await startSession(response, record);
        await audit.record({
          who: name,
          action: 'sign in',
          outcome: 'done',
          details: { method: 'token', role },
        });
        return viewSession({ name, role, method: 'token' }, record.expiresAtMs, access);
      },

      async endSession({ response }) {
        const id = cookieIn(response, sessionCookie);
        const session = id === undefined ? undefined : await sessions.find(id);
        setCookie(response, sessionCookie, '', 0);
        if (session) {
          access.revokeSession(session.key);
          await sessions.end(session);
        }
        response.status(204).end();
      },

      async startOidcSignIn({ query, response }) {
        const provider = requireProvider();
        const { req } = response;
        const { publicUrl } = access.rules.settings;
        // The cookie must belong to the host that the provider sends the person back to. A proxy may hide that host: redirect once.
        const isElsewhere = req.headers.host?.toLowerCase() !== new URL(publicUrl).host;
        const page = pageOf(query.page);
        if (isElsewhere && query.redirected === undefined)
          return redirect(
            response,
            `${publicUrl}/oidc/sign-in?${new URLSearchParams({ redirected: '1', page })}`,
          );
        const begun = await provider.begin(redirectUriOf(publicUrl));
        if (!begun) return redirect(response, consoleUrl(page, 'provider-unavailable'));
        countAttempt(response, oidcThrottle);
        // The same for all tabs, so that each of them can finish its own sign-in. For that reason it is not removed either.
        const known = cookieIn(response, signInCookie) ?? '';
        const id = isId(known) ? known : newId();
        await sessions.storeAttempt(id, { ...begun.attempt, page }, attemptTtlMs);
        setCookie(response, signInCookie, id, attemptTtlMs);
        return redirect(response, begun.url.href);
      },

      async finishOidcSignIn({ response }) {
        const provider = requireProvider();
        const id = cookieIn(response, signInCookie);
        const { state } = response.req.query;
        const isKnown = id !== undefined && typeof state === 'string';
        const attempt = isKnown ? await sessions.takeAttempt(id, state) : undefined;
        if (!attempt) {
          countAttempt(response, oidcThrottle);
          return redirect(response, consoleUrl('/', 'expired'));
        }
        const callbackUrl = new URL(redirectUriOf(access.rules.settings.publicUrl));
        callbackUrl.search = new URL(response.req.originalUrl, callbackUrl).search;
        const result = await provider.finish(callbackUrl, attempt);
        if (result.kind === 'signed-in')
          return redirect(response, consoleUrl(attempt.page, await admit(result.person, response)));
        log('warn', 'sign-in with OIDC failed', { result: result.kind, why: result.why });
        return redirect(response, consoleUrl(attempt.page, errorOf[result.kind]));
      },
    },
    refreshProvider: async () => currentProvider()?.refresh(),
  };
}

const errorOf = { denied: 'denied', unavailable: 'provider-unavailable', failed: 'failed' } as const;

function redirect(response: Response, url: string): undefined {
  response.redirect(302, url);
}

/** A page of payments, with its query; otherwise the first page of the console, so that a link cannot lead to another site. */
const pageOf = (asked = '/'): string =>
  /^\/payments(?:\/[^/?#]+\/[^/?#]+)?(?:\?[^#]*)?$/.test(asked) ? asked : '/';

const redirectUriOf = (publicUrl: string) => `${publicUrl}/oidc/callback`;

function viewSession(
  operator: OperatorIdentity | undefined,
  expiresAtMs: number | undefined,
  { rules: { settings, credentials } }: OperatorAccess,
) {
  return {
    name: operator?.name ?? null,
    role: operator?.role ?? null,
    method: operator?.method ?? null,
    expiresAt: expiresAtMs === undefined ? null : new Date(expiresAtMs).toISOString(),
    signInWith: [
      ...(credentials.operators.length > 0 ? (['token'] as const) : []),
      ...(settings.trustedProxies.length > 0 ? (['proxy'] as const) : []),
      ...(settings.oidc ? (['oidc'] as const) : []),
    ],
  };
}

/** The provider of the present configuration. It is created again when a reload changes what it depends on. */
function createProviderHolder(access: OperatorAccess, log: Log): () => OidcProvider | undefined {
  let current: OidcProvider | undefined;
  let createdFrom: readonly unknown[] = [];
  return () => {
    const { settings, credentials } = access.rules;
    const { oidc } = settings;
    const { oidcClientSecret, oidcCa } = credentials;
    const dependencies = [oidc, oidcClientSecret, oidcCa];
    if (isDeepStrictEqual(dependencies, createdFrom)) return current;
    createdFrom = dependencies;
    current = oidc && createOidcProvider(oidc, { oidcClientSecret, oidcCa }, log);
    return current;
  };
}

const newId = () => randomBytes(32).toString('base64url');
const isId = (text: string) => /^[\w-]{43}$/.test(text);
