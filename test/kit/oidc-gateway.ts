/** A gateway whose operators sign in at an OpenID Connect provider of the test. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from './folder.ts';
import { type GatewayUnderTest, startBank, startGateway } from './gateway.ts';
import { createOidcProvider, type OidcPerson, oidcClient, type ProviderOptions } from './oidc-provider.ts';
import { freePort } from './ports.ts';
import type { TestScope } from './test-scope.ts';
import { until } from './within.ts';

/** The person at the browser: has the role operate. */
export const ann: OidcPerson = { sub: 'subject-1', preferred_username: 'ann', groups: ['on-call'] };

const roles = { operate: ['on-call'], read: ['support'] };

interface Options extends Pick<ProviderOptions, 'tls' | 'claimsInIdToken'> {
  readonly scheme?: 'http' | 'https';
  readonly oidc?: object;
  readonly admin?: object;
  readonly state?: object;
  /** Whether the provider runs when the gateway starts. */
  readonly isUp?: boolean;
}

/** @returns also the settings to start another instance */
export async function startOidcGateway(
  t: TestScope,
  { scheme = 'http', oidc = {}, admin = {}, state = {}, isUp = true, ...options }: Options = {},
) {
  const port = await freePort();
  const url = `${scheme}://127.0.0.1:${port}`;
  const provider = await createOidcProvider(t, { redirectUri: `${url}/oidc/callback`, ...options });
  provider.person = ann;
  if (isUp) await provider.start();
  const clientSecretFile = join(temporaryFolder(t), 'secret');
  writeFileSync(clientSecretFile, `${oidcClient.secret}\n`);
  const bank = await startBank(t);
  const section = { issuer: provider.issuer, clientId: oidcClient.id, clientSecretFile, roles, ...oidc };
  const sections = {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    admin: { port, publicUrl: url, oidc: section, ...admin },
    state,
  };
  const gateway = await startGateway(t, sections);
  if (isUp) await untilProviderKnown(gateway);
  return { provider, gateway, url, sections };
}

/** Waits until the gateway knows the description of the provider. */
export const untilProviderKnown = ({ logLines }: GatewayUnderTest): Promise<void> =>
  until(10_000, 'the gateway knows the provider', () =>
    logLines.some((line) => line.includes('the OIDC provider is available')),
  );
