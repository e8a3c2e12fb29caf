/** Decides who sends a request to the admin listener, and with which role. A reload replaces the rules. */

import type { IncomingMessage } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import type { AdminSettings } from '../config/schema.ts';
import { readCookie, sessionCookie } from './cookies.ts';
import {
  type AdminCredentials,
  auditName,
  type ConfiguredOperator,
  findByToken,
  type OperatorRole,
  roleOf,
  type SignInMethod,
  sha256,
} from './operators.ts';
import { createHostCheck, type IsAllowedHost, isSecure } from './request-origin.ts';
import type { Session, SessionRecord, Sessions } from './sessions.ts';
import { createTrustedProxies, type TrustedProxies } from './trusted-proxy.ts';

/** Who an operator is. */
export interface OperatorIdentity {
  /** Appears in the audit log. */
  readonly name: string;
  readonly role: OperatorRole;
  readonly method: SignInMethod;
}

/** An operator whose credential was accepted. */
export interface Operator extends OperatorIdentity {
  readonly credential: Credential;
}

type Credential =
  | { readonly kind: 'token'; readonly tokenSha256: string }
  /** @param untilMs until when an event stream may run before the proxy must be asked again: milliseconds since 1970 */
  | { readonly kind: 'proxy'; readonly proxies: TrustedProxies; readonly untilMs: number }
  | { readonly kind: 'session'; readonly session: Session };

/** Authenticated, but no group of the person has a role. */
interface WithoutRole {
  readonly kind: 'no-role';
  readonly name: string;
  readonly method: SignInMethod;
}

export type Identification =
  | { readonly kind: 'operator'; readonly operator: Operator }
  | WithoutRole
  /** @param wrongToken whether the request contains a token that no operator has */
  | { readonly kind: 'unknown'; readonly wrongToken: boolean };

type SessionHolder = ({ readonly kind: 'operator' } & OperatorIdentity) | WithoutRole;

/** What follows from one configuration. */
export interface AccessRules {
  readonly settings: AdminSettings;
  readonly credentials: AdminCredentials;
  readonly isAllowedHost: IsAllowedHost;
  readonly proxies: TrustedProxies;
}

export interface OperatorAccess {
  readonly rules: AccessRules;
  /** Uses another configuration from now on. */
  replace(settings: AdminSettings, credentials: AdminCredentials): void;
  /** @throws GatewayError STATE_UNAVAILABLE if the request has only a session, and the state cannot be read */
  identify(request: IncomingMessage): Promise<Identification>;
  /** Whether the credential of a running event stream would still be accepted, with the same name and role. */
  isValid(operator: Operator): boolean;
  /** Remembers that a session was ended while it may still be in use here. */
  revokeSession(key: string): void;
}

export function createOperatorAccess(
  initialSettings: AdminSettings,
  initialCredentials: AdminCredentials,
  sessions: Pick<Sessions, 'find'>,
): OperatorAccess {
  let rules = createRules(initialSettings, initialCredentials);
  /** Keys of sessions that were ended while they were in use, with the time until which they are needed here. */
  const ended = new Map<string, number>();

  function revokeSession(key: string): void {
    for (const [other, untilMs] of ended) if (untilMs < Date.now()) ended.delete(other);
    ended.set(key, Date.now() + rules.settings.sessionTtl);
  }

  function identifyByToken(token: string): Identification | undefined {
    const found = findByToken(rules.credentials.operators, token);
    return found && { kind: 'operator', operator: tokenOperator(found) };
  }

  function identifyByProxy(request: IncomingMessage): Identification | undefined {
    const { settings, credentials, proxies } = rules;
    const person = proxies.personOf(request);
    if (!person) return undefined;
    const name = auditName(person.name, 'proxy', credentials.operators);
    const role = roleOf(person.groups, settings.proxySignIn.roles);
    if (!role) return { kind: 'no-role', name, method: 'proxy' };
    const credential = { kind: 'proxy', proxies, untilMs: Date.now() + settings.sessionTtl } as const;
    return { kind: 'operator', operator: { name, role, method: 'proxy', credential } };
  }

  async function identifyBySession(request: IncomingMessage): Promise<Identification | undefined> {
    const id = readCookie(request, sessionCookie, isSecure(request, rules.settings.publicUrl));
    const session = id === undefined ? undefined : await sessions.find(id);
    if (!session) return undefined;
    const holder = holderOf(session, rules);
    if (holder?.kind !== 'operator') return holder;
    const { name, role, method } = holder;
    return { kind: 'operator', operator: { name, role, method, credential: { kind: 'session', session } } };
  }

  return {
    get rules() {
      return rules;
    },
    replace(next, nextCredentials) {
      rules = createRules(next, nextCredentials, rules);
    },
    async identify(request) {
      const token = bearerToken(request);
      return (
        (token === undefined ? undefined : identifyByToken(token)) ??
        identifyByProxy(request) ??
        (await identifyBySession(request)) ?? { kind: 'unknown', wrongToken: token !== undefined }
      );
    },
    isValid({ name, role, credential }) {
      switch (credential.kind) {
        case 'token':
          return rules.credentials.operators.some(
            (one) => one.tokenSha256 === credential.tokenSha256 && one.name === name && one.role === role,
          );
        case 'proxy':
          return credential.proxies === rules.proxies && credential.untilMs > Date.now();
        case 'session': {
          const { session } = credential;
          if (session.expiresAtMs <= Date.now() || ended.has(session.key)) return false;
          const holder = holderOf(session, rules);
          return holder?.kind === 'operator' && holder.name === name && holder.role === role;
        }
      }
    },
    revokeSession,
  };
}

/** Whose session this is, and with which role by the present rules; `undefined` if its source is no longer configured. */
export function holderOf(
  { name: recordedName, source }: SessionRecord,
  { settings, credentials: { operators } }: AccessRules,
): SessionHolder | undefined {
  switch (source.method) {
    case 'token': {
      const found = operators.find((one) => digestOf(one) === source.tokenDigest);
      return found && { kind: 'operator', name: found.name, role: found.role, method: 'token' };
    }
    case 'oidc': {
      const { oidc } = settings;
      if (oidc?.issuer !== source.issuer || oidc.clientId !== source.clientId) return undefined;
      const name = auditName(recordedName, 'oidc', operators);
      const role = roleOf(source.groups, oidc.roles);
      return role
        ? { kind: 'operator', name, role, method: 'oidc' }
        : { kind: 'no-role', name, method: 'oidc' };
    }
  }
}

/** Identifies a token in a session: the state does not contain the hash itself, from which a weak token could be guessed. */
export const digestOf = ({ tokenSha256 }: ConfiguredOperator): string => sha256(`session ${tokenSha256}`);

/** The token of `Authorization`. */
function bearerToken({ headers }: IncomingMessage): string | undefined {
  return /^Bearer ([\x21-\x7e]+)$/i.exec(headers.authorization ?? '')?.[1];
}

const tokenOperator = ({ name, role, tokenSha256 }: ConfiguredOperator): Operator => ({
  name,
  role,
  method: 'token',
  credential: { kind: 'token', tokenSha256 },
});

/** Keeps the object of unchanged proxies, because event streams compare it. */
function createRules(
  settings: AdminSettings,
  credentials: AdminCredentials,
  previous?: AccessRules,
): AccessRules {
  const isSame = previous && isDeepStrictEqual(proxySettingsOf(previous.settings), proxySettingsOf(settings));
  return {
    settings,
    credentials,
    isAllowedHost: createHostCheck(settings),
    proxies: isSame ? previous.proxies : createTrustedProxies(settings),
  };
}

const proxySettingsOf = ({ trustedProxies, proxySignIn }: AdminSettings) => ({ trustedProxies, proxySignIn });
