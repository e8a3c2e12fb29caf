/** The routes of the sign-in of operators: sessions, and the OIDC provider. */

import { oidcSignInQuery, signInRequest } from './request-schemas.ts';
import { session } from './response-schemas.ts';
import type { Route } from './route.ts';

const wrongToken = {
  401: 'No operator has this token.',
  403: 'Another web page sent the request.',
  429: 'Too many wrong tokens from this address; see Retry-After.',
};
const databaseUnavailable = { 503: 'The database is unavailable.' };

export const signInRoutes = {
  getSession: {
    method: 'get',
    path: '/api/session',
    role: 'guest',
    summary: 'Show who the caller is, and how operators can sign in',
    response: {
      description: 'The operator; all members but signInWith are null without one.',
      schema: session,
    },
    errors: databaseUnavailable,
  },
  startSession: {
    method: 'post',
    path: '/api/session',
    role: 'guest',
    summary: 'Sign in with a token: the response sets the cookie of a session',
    body: signInRequest,
    response: { description: 'Signed in.', schema: session },
    errors: { ...wrongToken, ...databaseUnavailable },
  },
  endSession: {
    method: 'delete',
    path: '/api/session',
    role: 'guest',
    summary: 'Sign out: end the session on all instances, with its event streams',
    response: { description: 'There is no session any more.', status: 204 },
    errors: { 403: 'Another web page sent the request.', ...databaseUnavailable },
  },
  startOidcSignIn: {
    method: 'get',
    path: '/oidc/sign-in',
    role: 'guest',
    summary: 'Sign in with the OIDC provider; to be opened in a browser',
    query: oidcSignInQuery,
    response: {
      description: 'To the provider, or to the console with the parameter signInError.',
      status: 302,
    },
    errors: { 404: 'admin.oidc is not set.', ...databaseUnavailable },
  },
  finishOidcSignIn: {
    method: 'get',
    path: '/oidc/callback',
    role: 'guest',
    summary: 'The redirect URI of the OIDC provider',
    response: {
      description: 'To the console, with the cookie of a session or with the parameter signInError.',
      status: 302,
    },
    errors: { 404: 'admin.oidc is not set.', ...databaseUnavailable },
  },
} as const satisfies Readonly<Record<string, Route>>;
