/** The checks of each request to the admin listener: its host name, its operator, the page that sent it, and the role. */

import type { Request, RequestHandler, Response } from 'express';
import type { Log } from '../telemetry/log.ts';
import type { Operator, OperatorAccess } from './operator-access.ts';
import { isSameOrigin } from './request-origin.ts';
import type { SignInThrottle } from './sign-in-throttle.ts';

interface AuthenticationDependencies {
  readonly access: Pick<OperatorAccess, 'rules' | 'identify'>;
  readonly throttle: SignInThrottle;
  readonly log: Log;
}

/**
 * Rejects requests with an unknown name as `Host`: a hostile site can point its own DNS name to this address (DNS
 * rebinding).
 */
export function rejectForeignHosts(access: Pick<OperatorAccess, 'rules'>): RequestHandler {
  return (request, response, next) => {
    if (access.rules.isAllowedHost(request.headers.host ?? '')) return next();
    response.status(421).json({
      error:
        'The Host header is not allowed; add this name to admin.hosts, or use localhost or the IP address of this listener.',
    });
  };
}

/** Sets the operator of a request, if it has one. For routes that everybody may use. */
export function identifyOperator({ access, log }: AuthenticationDependencies): RequestHandler {
  return async (request, response, next) => {
    const found = await access.identify(request);
    if (found.kind === 'operator') response.locals.operator = found.operator;
    if (!refuseForeignPage(request, response, access, log)) next();
  };
}

/** Answers 401 without a valid credential. Sets the operator of the request, which `operatorOf` returns. */
export function authenticateOperators(dependencies: AuthenticationDependencies): RequestHandler {
  const { access, log } = dependencies;
  return async (request, response, next) => {
    const found = await access.identify(request);
    switch (found.kind) {
      case 'operator':
        response.locals.operator = found.operator;
        if (!refuseForeignPage(request, response, access, log)) next();
        return;
      case 'no-role':
        log('warn', 'admin request refused: the person has no role', {
          who: found.name,
          signIn: found.method,
        });
        response.status(403).json({ error: noRole });
        return;
      case 'unknown':
        refuseUnknown(request, response, found.wrongToken, dependencies);
    }
  };
}

/** Answers 401, or 429 after too many wrong tokens from one address. */
function refuseUnknown(
  request: Request,
  response: Response,
  wrongToken: boolean,
  { access, throttle, log }: AuthenticationDependencies,
): void {
  const seconds = wrongToken ? throttle.countFailure(access.rules.proxies.clientAddress(request)) : 0;
  if (seconds > 0) {
    response.set('Retry-After', String(seconds));
    response.status(429).json({
      error: `Too many wrong tokens from this address; try again in ${seconds} s. A valid token is accepted at any time.`,
    });
    return;
  }
  log('warn', 'admin request refused: no valid token');
  response.set('WWW-Authenticate', 'Bearer realm="penstock"');
  response
    .status(401)
    .json({ error: 'The operator token is missing or unknown; send Authorization: Bearer TOKEN.' });
}

/** The authenticated operator of a request. */
export const operatorOf = (response: Response): Operator => response.locals.operator; // Express types `locals` as `any`

/** The operator of a request that needs none; `undefined` if it has none. */
export const operatorIfAny = (response: Response): Operator | undefined => response.locals.operator; // as above

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

/** RFC 9110 section 9.2.1. */
export const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

const noRole =
  'None of your groups has a role here; ask those who operate the gateway to add one to the roles of admin.proxySignIn or admin.oidc.';

/**
 * Answers 403 if the page of another origin sent a request that changes something (cross-site request forgery). A token in
 * `Authorization` proves the opposite: no foreign page knows it.
 *
 * @returns whether it has answered
 */
function refuseForeignPage(
  request: Request,
  response: Response,
  { rules }: Pick<OperatorAccess, 'rules'>,
  log: Log,
): boolean {
  const operator = operatorIfAny(response);
  if (safeMethods.has(request.method) || operator?.credential.kind === 'token') return false;
  const browserOnly = operator?.credential.kind === 'session';
  if (isSameOrigin(request, rules.settings.publicUrl, { browserOnly })) return false;
  log('warn', 'admin request refused: another web page sent it', { who: operator?.name });
  response.status(403).json({
    error:
      'Another web page sent this request; use the console itself, at the address that admin.publicUrl states.',
  });
  return true;
}
