/** Authentication and authorization on the admin listener: one bearer token per operator, no cookies, no default token. */

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import type { RequestHandler, Response } from 'express';
import type { AdminSettings } from '../config/schema.ts';
import type { Log } from '../telemetry/log.ts';

export interface Operator {
  /** Appears in the audit log. */
  readonly name: string;
  /** SHA-256 of the bearer token, in lower-case hex. */
  readonly tokenSha256: string;
  readonly role: OperatorRole;
}

type OperatorRole = 'read' | 'operate';

interface ConfiguredOperators {
  readonly operators: readonly Operator[];
  /** A token generated for this run, if none is configured. The caller must show it to the person who starts Penstock. */
  readonly generatedToken?: string;
}

/**
 * The operators of the configuration, and the operator `admin` if there is a token.
 *
 * Without operators and token, `admin` gets a generated token; the configuration allows this on loopback only.
 */
export function configuredOperators(
  { operators }: AdminSettings,
  token: string | undefined,
): ConfiguredOperators {
  if (token !== undefined) return { operators: [...operators, adminOperator(token)] };
  if (operators.length > 0) return { operators };
  const generatedToken = randomBytes(24).toString('base64url');
  return { operators: [adminOperator(generatedToken)], generatedToken };
}

const adminOperator = (token: string): Operator => ({
  name: 'admin',
  tokenSha256: createHash('sha256').update(token).digest('hex'),
  role: 'operate',
});

/** Answers 401 without a valid token. Sets the operator of the request, which `operatorOf` returns. */
export function authenticateOperators(operators: readonly Operator[], log: Log): RequestHandler {
  return (request, response, next) => {
    const operator = findOperator(operators, request.headers.authorization);
    if (operator) {
      response.locals.operator = operator;
      return next();
    }
    log('warn', 'admin request refused: no valid token');
    response.set('WWW-Authenticate', 'Bearer realm="penstock"');
    response
      .status(401)
      .json({ error: 'The operator token is missing or unknown; send Authorization: Bearer TOKEN.' });
  };
}

/** The authenticated operator of a request. */
export const operatorOf = (response: Response): Operator => response.locals.operator; // Express types `locals` as `any`

/** Answers 403 to operators without the role `operate`. */
export function requireOperateRole(log: Log): RequestHandler {
  return (request, response, next) => {
    const { name, role } = operatorOf(response);
    if (role === 'operate') return next();
    log('warn', 'admin request refused: requires the role operate', { who: name, method: request.method });
    response
      .status(403)
      .json({ error: 'This operator has the role read; the request requires the role operate.' });
  };
}

/**
 * Rejects requests with an unknown name as `Host`: a hostile site can point its own DNS name to this address (DNS
 * rebinding). It accepts IP addresses, `localhost` and the configured host.
 */
export function rejectForeignHosts(configuredHost: string): RequestHandler {
  return (request, response, next) => {
    const host = hostname(request.headers.host ?? '');
    if (isIP(host) > 0 || host === 'localhost' || host === configuredHost.toLowerCase()) return next();
    response.status(421).json({
      error: 'The Host header is not allowed; use the IP address of this listener, localhost or admin.host.',
    });
  };
}

const hostname = (host: string) =>
  host
    .toLowerCase()
    .replace(/:\d+$/, '')
    .replace(/^\[(.*)\]$/, '$1');

/** Compares with every operator in constant time, so that timing reveals no correct prefix and no list position. */
function findOperator(
  operators: readonly Operator[],
  authorization: string | undefined,
): Operator | undefined {
  const token = /^Bearer ([\x21-\x7e]+)$/i.exec(authorization ?? '')?.[1];
  if (token === undefined) return undefined;
  const digest = createHash('sha256').update(token).digest();
  return operators.filter(({ tokenSha256 }) => timingSafeEqual(digest, Buffer.from(tokenSha256, 'hex')))[0];
}
