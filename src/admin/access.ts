/** Who may do what on the operators' listener: a bearer token each, no cookies, nothing by default. */

import { createHash, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import type { RequestHandler } from 'express';
import type { Log } from '../telemetry/log.ts';

/** One operator, as configured. */
export interface Operator {
  /** Stands in the audit log. */
  readonly name: string;
  /** SHA-256 of the bearer token, in lower-case hex. */
  readonly tokenSha256: string;
  readonly role: 'read' | 'operate';
}

const looking: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** Lets operators through, with their name and role in `response.locals`; answers 401 or 403 to everybody else. */
export function admitOperators(operators: readonly Operator[], log: Log): RequestHandler {
  return (request, response, next) => {
    const operator = operatorOf(operators, request.headers.authorization);
    if (!operator) {
      log('warn', "somebody without a valid token was refused at the operators' door");
      response.set('WWW-Authenticate', 'Bearer realm="penstock"');
      response.status(401).json({ error: 'Send the token of an operator: Authorization: Bearer TOKEN.' });
    } else if (!looking.has(request.method) && operator.role !== 'operate') {
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
export function refuseForeignHosts(configured: string): RequestHandler {
  return (request, response, next) => {
    const host = hostNameOf(request.headers.host ?? '');
    if (isIP(host) > 0 || host === 'localhost' || host === configured.toLowerCase()) return next();
    response
      .status(421)
      .json({ error: 'Address this listener by its IP address, as localhost, or as admin.host.' });
  };
}

const hostNameOf = (host: string) =>
  host
    .toLowerCase()
    .replace(/:\d+$/, '')
    .replace(/^\[(.*)\]$/, '$1');

/** Compares with every operator, in constant time: neither a right prefix nor a place in the list shows. */
function operatorOf(operators: readonly Operator[], authorization: string | undefined): Operator | undefined {
  const token = /^Bearer ([\x21-\x7e]+)$/i.exec(authorization ?? '')?.[1];
  if (token === undefined) return undefined;
  const digest = createHash('sha256').update(token).digest();
  return operators.filter(({ tokenSha256 }) => timingSafeEqual(digest, Buffer.from(tokenSha256, 'hex')))[0];
}
