/** A real OpenID Connect provider (oidc-provider) in this process, at which tests sign in without a browser. */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { Provider } from 'oidc-provider';
import { freePort } from './ports.ts';
import type { TestScope } from './test-scope.ts';

export interface OidcPerson {
  readonly sub: string;
  readonly preferred_username?: string;
  readonly email?: string;
  readonly groups?: readonly string[];
}

export interface OidcProviderUnderTest {
  readonly issuer: string;
  /** The person who sits at the browser; `undefined` refuses to sign in. */
  person: OidcPerson | undefined;
  /** How many codes were exchanged for tokens. */
  readonly exchanges: () => number;
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface ProviderOptions {
  readonly redirectUri: string;
  readonly tls?: { readonly cert: string; readonly key: string };
  /** `localhost` is another site than 127.0.0.1, so that cookies with SameSite=Strict are not sent. */
  readonly host?: 'localhost' | '127.0.0.1';
  /** Whether the ID token contains the claims of the profile, or only the userinfo endpoint has them. */
  readonly claimsInIdToken?: boolean;
}

export const oidcClient = { id: 'penstock', secret: 'secret-of-the-oidc-client' };

/** On a free port; not listening yet. Stopped when the test ends. */
export async function createOidcProvider(
  scope: TestScope,
  { redirectUri, tls, host = 'localhost', claimsInIdToken = true }: ProviderOptions,
): Promise<OidcProviderUnderTest> {
  const port = await freePort();
  const issuer = `${tls ? 'https' : 'http'}://${host}:${port}`;
  let exchanges = 0;
  const accounts = new Map<string, OidcPerson>();
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: oidcClient.id,
        client_secret: oidcClient.secret,
        redirect_uris: [redirectUri],
        token_endpoint_auth_method: 'client_secret_basic',
      },
    ],
    claims: { openid: ['sub'], profile: ['preferred_username', 'groups'], email: ['email'] },
    conformIdTokenClaims: !claimsInIdToken,
    pkce: { required: () => true },
    cookies: { keys: ['a key of the test'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    findAccount: (_context: unknown, id: string) => ({
      accountId: id,
      claims: async () => ({ ...accounts.get(id), sub: id }),
    }),
    // Without a page that asks for consent: the gateway is the organisation's own client.
    async loadExistingGrant({ oidc: { client, session, result } }: GrantContext) {
      const accountId = session?.accountId ?? result?.login?.accountId;
      const grant = new provider.Grant({ accountId, clientId: client.clientId });
      grant.addOIDCScope('openid profile email');
      await grant.save();
      return grant;
    },
  });
  provider.on('grant.success', () => void exchanges++);

  async function interact(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { person } = underTest;
    if (person) accounts.set(person.sub, person);
    const result = person
      ? { login: { accountId: person.sub, remember: false } }
      : { error: 'access_denied' };
    await provider.interactionFinished(request, response, result);
  }

  const handle = provider.callback();
  const serve = (request: IncomingMessage, response: ServerResponse) =>
    request.url?.startsWith('/interaction/')
      ? void interact(request, response)
      : void handle(request, response);
  let server: Server | undefined;
  const underTest: OidcProviderUnderTest = {
    issuer,
    person: undefined,
    exchanges: () => exchanges,
    async start() {
      server = tls ? createTlsServer(tls, serve) : createServer(serve);
      server.listen(port, host);
      await once(server, 'listening');
    },
    async stop() {
      const stopped = server;
      server = undefined;
      if (!stopped) return;
      await new Promise((resolve) => {
        stopped.close(resolve);
        stopped.closeAllConnections();
      });
    },
  };
  scope.after(underTest.stop);
  return underTest;
}

/** The part of the library's context that `loadExistingGrant` reads. */
interface GrantContext {
  readonly oidc: {
    readonly client: { readonly clientId: string };
    readonly session?: { readonly accountId?: string };
    readonly result?: { readonly login?: { readonly accountId?: string } };
  };
}
