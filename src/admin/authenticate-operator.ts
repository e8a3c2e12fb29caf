/** Who may do what on the operators' listener: a bearer token each, no cookies, nothing by default. */

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import type { RequestHandler } from 'express';
import type { AdminSettings } from '../config/schema.ts';
import type { Log } from '../telemetry/log.ts';

/** One operator, as configured. */
export interface Operator {
  /** Stands in the audit log. */
  readonly name: string;
  /** SHA-256 of the bearer token, in lower-case hex. */
  readonly tokenSha256: string;
  readonly role: 'read' | 'operate';
}

const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** Lets operators through, with their name and role in `response.locals`; answers 401 or 403 to everybody else. */
export function authenticateOperators(operators: readonly Operator[], log: Log): RequestHandler {
  return (request, response, next) => {
    const operator = findOperator(operators, request.headers.authorization);
    if (!operator) {
      log('warn', "somebody without a valid token was refused at the operators' door");
      response.set('WWW-Authenticate', 'Bearer realm="penstock"');
      response.status(401).json({ error: 'Send the token of an operator: Authorization: Bearer TOKEN.' });
    } else if (!safeMethods.has(request.method) && operator.role !== 'operate') {
      log('warn', 'an operator was refused', { who: operator.name, method: request.method });
      response.status(403).json({ error: 'This operator may look, but not change anything.' });
    } else {
      response.locals.operator = operator.name;
      response.locals.role = operator.role;
      next();
    }
  };
}

/**
 * Refuses requests that a web page smuggled in under a name of its own (DNS rebinding): an address is told apart from a
 * name, and the only names are `localhost` and the configured host.
 */
export function rejectForeignHosts(configuredHost: string): RequestHandler {
  return (request, response, next) => {
    const host = hostname(request.headers.host ?? '');
    if (isIP(host) > 0 || host === 'localhost' || host === configuredHost.toLowerCase()) return next();
    response
      .status(421)
      .json({ error: 'Address this listener by its IP address, as localhost, or as admin.host.' });
  };
}

const hostname = (host: string) =>
  host
    .toLowerCase()
    .replace(/:\d+$/, '')
    .replace(/^\[(.*)\]$/, '$1');

/** Compares with every operator, in constant time: neither a right prefix nor a place in the list shows. */
function findOperator(
  operators: readonly Operator[],
  authorization: string | undefined,
): Operator | undefined {
  const token = /^Bearer ([\x21-\x7e]+)$/i.exec(authorization ?? '')?.[1];
  if (token === undefined) return undefined;
  const digest = createHash('sha256').update(token).digest();
  return operators.filter(({ tokenSha256 }) => timingSafeEqual(digest, Buffer.from(tokenSha256, 'hex')))[0];
}

// MERGED HEADER (rewrite or remove):
/* Which operators there are, by the configuration and the token that stands beside it. */

export interface ConfiguredOperators {
  readonly operators: readonly Operator[];
  /** A token made for this run, because nothing was configured: whoever started the gateway must be told. */
  readonly madeToken?: string;
}

/**
 * The configured operators, and "admin" if there is a token.
 *
 * With neither there is an "admin" with a token made for this run: the configuration allows that on loopback only.
 */
export function configuredOperators(
  { operators }: AdminSettings,
  token: string | undefined,
): ConfiguredOperators {
  if (token !== undefined) return { operators: [...operators, adminOperator(token)] };
  if (operators.length > 0) return { operators };
  const madeToken = randomBytes(24).toString('base64url');
  return { operators: [adminOperator(madeToken)], madeToken };
}

function adminOperator(token: string): Operator {
  return { name: 'admin', tokenSha256: createHash('sha256').update(token).digest('hex'), role: 'operate' };
}
