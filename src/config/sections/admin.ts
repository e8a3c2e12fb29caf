/** admin: the admin listener, and how operators sign in. */

import { z } from 'zod';
import { isNetwork } from '../network-list.ts';
import { duration } from '../units.ts';
import {
  file,
  fingerprintDigits,
  host,
  hostName,
  issuer,
  plainName,
  port,
  secretHash,
  webAddress,
} from '../values.ts';
import { links } from './admin-links.ts';
import { listenerTls } from './listener-tls.ts';

const operator = z.strictObject({
  name: plainName().describe('The name of the operator in the audit log.'),
  tokenSha256: secretHash().describe(
    'SHA-256 of the bearer token: 64 hex digits (printf %s "$TOKEN" | sha256sum).',
  ),
  role: z
    .enum(['read', 'operate'])
    .default('read')
    .describe('`read` allows reading only; `operate` also allows changes.'),
});

const proxyExpected =
  'expected an IP address, a network such as 10.0.0.0/8, or the SHA-256 fingerprint of a client certificate';

const trustedProxy = z
  .string({ error: proxyExpected })
  .transform((text) => fingerprintDigits(text) ?? text)
  .refine((text) => isNetwork(text) || fingerprintDigits(text) !== undefined, proxyExpected)
  .refine(
    (text) => !text.endsWith('/0'),
    'every host could act as any operator; list the addresses of the proxies',
  );

const group = () => z.string().min(1).max(256);

/** The groups of a person, and the roles that follow from them. */
const roles = () =>
  z
    .strictObject({
      operate: z
        .array(group())
        .default([])
        .describe('The groups whose members have the role operate: they may also change things.'),
      read: z
        .union([z.literal('any'), z.array(group())], { error: 'expected any, or a list of groups' })
        .default([])
        .describe('The groups whose members have the role read. `any`: everybody who signs in has it.'),
    })
    .prefault({})
    .describe('The roles of the members of groups. A person without a role is refused.');

const headerName = (fallback: string) =>
  z
    .string()
    .regex(
      /^[A-Za-z][A-Za-z0-9-]{0,63}$/,
      'expected the name of a header: letters, digits and hyphens, beginning with a letter',
    )
    .refine(
      (name) => !otherHeaders.has(name.toLowerCase()),
      'expected a header that the proxy sets for this purpose; this one has another meaning',
    )
    .default(fallback);

/** Some contain secrets, which would then be in the audit log. */
const otherHeaders: ReadonlySet<string> = new Set([
  ...['authorization', 'proxy-authorization', 'cookie', 'host', 'origin', 'user-agent'],
  ...['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'],
]);

const proxySignIn = z
  .strictObject({
    userHeader: headerName('X-Forwarded-User').describe(
      'The header in which a trusted proxy sends the name of the person; the audit log shows it.',
    ),
    groupsHeader: headerName('X-Forwarded-Groups').describe(
      "The header in which a trusted proxy sends the person's groups, separated by commas.",
    ),
    roles: roles(),
  })
  .prefault({})
  .describe(
    'How operators sign in at a proxy in front of the listener; used only with admin.trustedProxies.',
  );

const oidc = z.strictObject({
  issuer: issuer().describe(
    'The issuer of the provider, exactly as the provider writes it. The gateway reads ISSUER/.well-known/openid-configuration.',
  ),
  clientId: z.string().min(1).describe('The id under which the provider knows the gateway.'),
  clientSecretFile: file()
    .nullable()
    .default(null)
    .describe(
      'The file with the secret of the client. The environment variable PENSTOCK_ADMIN_OIDC_CLIENT_SECRET contains it itself. Without either, the gateway is a public client, protected by PKCE only.',
    ),
  clientAuthentication: z
    .enum(['client_secret_basic', 'client_secret_post'])
    .default('client_secret_basic')
    .describe('How the gateway sends the secret: the method that the provider has registered for it.'),
  scopes: z
    .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'expected a scope such as profile'))
    .refine((scopes) => scopes.includes('openid'), 'expected a list that contains openid')
    .default(['openid', 'profile', 'email'])
    .describe('The requested scopes. Some providers send groups only with a scope such as groups.'),
  nameClaim: z
    .string()
    .min(1)
    .default('preferred_username')
    .describe(
      'The claim with the name of the person for the audit log; without it, the name is email or sub.',
    ),
  groupsClaim: z
    .string()
    .min(1)
    .default('groups')
    .describe("The claim with the person's groups or roles; a path such as realm_access.roles is possible."),
  roles: roles(),
  caFile: file()
    .nullable()
    .default(null)
    .describe('The trusted CA certificates for the provider, in PEM format, instead of those of Node.'),
});

export const admin = z
  .strictObject({
    host: host('127.0.0.1').describe(
      'The address to listen on, for the console, the admin API, health checks and metrics.',
    ),
    port: port(9090).describe(
      'The port to listen on; 0 selects a free port. Unless set, it follows listen.port: the next port if both listeners would have the same address.',
    ),
    hosts: z
      .array(hostName())
      .default([])
      .describe(
        'The names under which operators and programs reach the listener, such as that of a Kubernetes service. IP addresses, localhost, admin.host and the host of admin.publicUrl are always allowed; other names get 421, because a hostile site could point its own name to this address (DNS rebinding).',
      ),
    publicUrl: webAddress()
      .refine(
        (url) => new URL(url).pathname === '/',
        'the console needs a host of its own, because it loads its files and data from the root; remove the path',
      )
      .optional()
      .meta({ defaultText: 'from host and port: http://127.0.0.1:9090' })
      .describe(
        'The URL under which operators open the console. The OIDC provider must allow this URL followed by /oidc/callback as redirect URI. With https, the cookies of sessions are Secure.',
      ),
    tls: listenerTls({
      certificate: 'The certificate of the admin listener with its chain, in PEM format.',
      clientCertificate:
        'admin.trustedProxies: optional if it contains a fingerprint and clientCaFile is set',
    })
      .optional()
      .describe('TLS settings of the admin listener; without them, it uses plain HTTP.'),
    tokenFile: file()
      .nullable()
      .default(null)
      .describe(
        'The file with the bearer token of one operator named "admin". The environment variable PENSTOCK_ADMIN_TOKEN contains such a token itself. Prefer admin.operators: a shared token does not identify a person.',
      ),
    operators: z
      .array(operator)
      .prefault([])
      .describe(
        'The operators with tokens of their own. If there are none, no token is set, and there is no other way to sign in, a token is generated and printed at the start; this is possible on loopback only.',
      ),
    links,
    trustedProxies: z
      .array(trustedProxy)
      .prefault([])
      .describe(
        'The proxies that authenticate operators: addresses or networks, or SHA-256 fingerprints of their client certificates. The headers of admin.proxySignIn are ignored from every other source. Everything at a listed address can act as any operator: list single addresses, or prefer certificates.',
      ),
    proxySignIn,
    oidc: oidc.optional().describe('Sign-in with an OpenID Connect provider.'),
    sessionTtl: duration('8h', { min: '1min', max: '7d' }).describe(
      'How long a session in a browser lasts. Event streams end with it. The provider is not asked again before that.',
    ),
  })
  .prefault({})
  .describe('The admin listener and its operators.');
