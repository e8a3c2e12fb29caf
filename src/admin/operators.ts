/** The operators: their names and roles, how they signed in, and the tokens and secrets of the configuration. */

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFromDisk } from '../certificates/file-watcher.ts';
import type { EnvironmentVariables } from '../config/environment-variables.ts';
import { adminToken, oidcClientSecret } from '../config/load.ts';
import { hasNamedOperators } from '../config/resolve-defaults.ts';
import type { AdminSettings } from '../config/schema.ts';
import { oneLine } from './request-schemas.ts';

export type OperatorRole = 'read' | 'operate';

export type SignInMethod = 'token' | 'proxy' | 'oidc';

/** An operator with a token. */
export interface ConfiguredOperator {
  /** Appears in the audit log. */
  readonly name: string;
  /** SHA-256 of the bearer token, in lower-case hex. */
  readonly tokenSha256: string;
  readonly role: OperatorRole;
}

/** A person whose name and groups somebody else vouches for: a trusted proxy, or the OIDC provider. */
export interface Person {
  readonly name: string;
  readonly groups: readonly string[];
}

/** The tokens and secrets that belong to the settings, but are in files or environment variables. */
export interface AdminCredentials {
  readonly operators: readonly ConfiguredOperator[];
  /** `undefined` if OIDC is not configured, or the gateway is a public client. */
  readonly oidcClientSecret: string | undefined;
  /** The trusted authorities of the provider, in PEM format; `undefined` for those of Node. */
  readonly oidcCa: string | undefined;
}

/** Called at the start and at each reload. @throws Error that names the file, if one cannot be read */
export type ReadAdminCredentials = (settings: AdminSettings) => AdminCredentials;

/**
 * Reads the operators of the configuration, and the operator `admin` if there is a token.
 *
 * If nobody could sign in, `admin` gets a token that is generated once; the configuration allows this on loopback only.
 *
 * @param onTokenGenerated must show the token to the person who starts Penstock
 */
export function createCredentialsReader(
  onTokenGenerated: (token: string) => void,
  variables?: EnvironmentVariables,
): ReadAdminCredentials {
  let generatedToken: string | undefined;
  const generate = () => {
    generatedToken = randomBytes(24).toString('base64url');
    onTokenGenerated(generatedToken);
    return generatedToken;
  };
  return (settings) => {
    const configured = adminToken(settings, variables);
    const isNeeded = configured === undefined && !hasNamedOperators(settings);
    const token = isNeeded ? (generatedToken ?? generate()) : configured;
    return {
      operators: token === undefined ? settings.operators : [...settings.operators, adminOperator(token)],
      oidcClientSecret: oidcClientSecret(settings, variables),
      oidcCa: settings.oidc?.caFile ? readFromDisk(settings.oidc.caFile).toString() : undefined,
    };
  };
}

const adminOperator = (token: string): ConfiguredOperator => ({
  name: 'admin',
  tokenSha256: sha256(token),
  role: 'operate',
});

/** Lower-case hex. */
export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Compares with every operator in constant time, so that timing reveals no correct prefix and no list position. */
export function findByToken(
  operators: readonly ConfiguredOperator[],
  token: string,
): ConfiguredOperator | undefined {
  const digest = createHash('sha256').update(token).digest();
  return operators.filter(({ tokenSha256 }) => timingSafeEqual(digest, Buffer.from(tokenSha256, 'hex')))[0];
}

/** The role of a member of these groups. */
export function roleOf(
  groups: readonly string[],
  { operate, read }: AdminSettings['proxySignIn']['roles'],
): OperatorRole | undefined {
  if (groups.some((group) => operate.includes(group))) return 'operate';
  return read === 'any' || groups.some((group) => read.includes(group)) ? 'read' : undefined;
}

/** Names in the audit log that no person may have: the gateway's own, that of the shared token, and that of a person without one. */
const reservedNames: readonly string[] = ['admin', 'gateway', 'unnamed'];

/** Characters without a glyph: two names that differ only in these look the same. */
const invisible = /\p{Default_Ignorable_Code_Point}/gu;

const maxNameLength = 128;

/** The name of a person in the audit log: never that of an operator with a token, so that nobody is taken for another one. */
export function auditName(
  person: string,
  method: SignInMethod,
  operators: readonly ConfiguredOperator[],
): string {
  const name = oneLine(person.replaceAll(invisible, '')).slice(0, maxNameLength) || 'unnamed';
  const isTaken = [...reservedNames, ...operators.map((one) => one.name)].includes(name);
  return isTaken ? `${name} (${method})` : name;
}
