/** Warnings about a valid configuration: what is allowed, but probably not intended in production. */

import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseCertificate } from '../certificates/certificate-info.ts';
import { certificateNames, isInDomain } from '../certificates/certificate-names.ts';
import type { ReadFile } from '../certificates/file-watcher.ts';
import { type CertificateUse, expiryWarning } from '../certificates/installed-certificates.ts';
import { type ConfigError, formatPath } from './config-errors.ts';
import { saysSecret } from './fixed-values.ts';
import type { SettingPath } from './object-path.ts';
import { placeholderWarnings } from './placeholders.ts';
import { configuredListeners, hasNamedOperators, versionOf } from './resolve-defaults.ts';
import type { Config } from './schema.ts';
import { isLoopback } from './values.ts';

/** Names the setting to change, like an error. */
export type ConfigWarning = ConfigError;

/** Facts that are not in the configuration itself. */
export interface WarningContext {
  /** Whether PENSTOCK_ADMIN_TOKEN contains a token. */
  readonly adminToken: boolean;
  /** Reads the files that settings name; without it they are not checked. */
  readonly read?: ReadFile | undefined;
}

/** `listen.host: every host that reaches ...` */
export const describeWarning = ({ path, message }: ConfigWarning): string =>
  `${formatPath(path)}: ${message}`;

export const configWarnings = (config: Config, context: WarningContext): readonly ConfigWarning[] =>
  [
    placeholderWarnings,
    exposureWarnings,
    openLookUps,
    noOperators,
    sessionsInPlainText,
    signInOnLoopback,
    repeatedSegment,
    secretsInTheFile,
    clientsOfInactiveEnvironments,
    stateInMemory,
    webhooksWithoutKey,
    notificationsOfAnotherDomain,
    missingStateFolder,
    expiringCertificates,
    incompleteSignatures,
    payerInPolls,
  ].flatMap((warningsOf) => warningsOf(config, context));

/** Warnings about a listener that other hosts can reach. `serve` logs them as well. */
export function exposureWarnings({ listen, clients }: Config): readonly ConfigWarning[] {
  if (isLoopback(listen.host)) return [];
  const path = ['listen', 'host'];
  const { hostname } = new URL(listen.publicUrl);
  const warnings: ConfigWarning[] = [];
  if (clients.length === 0 && listen.tls?.clientCertificate !== 'required')
    warnings.push({
      path,
      related: [['clients']],
      message:
        `every host that can reach ${listen.host} can send payments, because no client is configured; ` +
        'add clients, or listen on 127.0.0.1',
    });
  if (isLoopback(hostname))
    warnings.push({
      path: ['listen', 'publicUrl'],
      related: [path],
      message:
        `links in responses point to ${listen.publicUrl}, which other hosts cannot reach; ` +
        'set the URL under which TPP systems reach the gateway',
    });
  return warnings;
}

function openLookUps({ requests, clients, listen }: Config): readonly ConfigWarning[] {
  if (!requests.selfService || clients.length > 0 || isLoopback(listen.host)) return [];
  const message = `everyone who can send requests to ${listen.host} can look up those of all others, because no client is configured; add clients, or remove this setting`;
  return [{ path: ['requests', 'selfService'], related: [['clients']], message }];
}

function noOperators({ admin }: Config, { adminToken }: WarningContext): readonly ConfigWarning[] {
  if (hasNamedOperators(admin)) return [];
  const path = ['admin', 'operators'];
  const consequence =
    adminToken || admin.tokenFile !== null
      ? 'all operators share one token, and the audit log names all of them "admin"'
      : 'each start generates a new token, and the audit log names every operator "admin"';
  const message = `no operator is configured: ${consequence}; add an entry for each operator`;
  return [{ path, related: [['admin', 'tokenFile']], message }];
}

/** On loopback, nobody else can read them. */
function sessionsInPlainText({ admin }: Config): readonly ConfigWarning[] {
  const { protocol, hostname } = new URL(admin.publicUrl);
  if (!admin.oidc || protocol === 'https:' || isLoopback(hostname)) return [];
  const message =
    'sessions of operators can be read on the network, because the URL begins with http:; ' +
    'set admin.tls, or the https: URL of a proxy in front';
  return [{ path: ['admin', 'publicUrl'], related: [['admin', 'tls']], message }];
}

/** Right for a tunnel or `kubectl port-forward` only. */
function signInOnLoopback({ admin }: Config): readonly ConfigWarning[] {
  const { hostname } = new URL(admin.publicUrl);
  if (!admin.oidc || isLoopback(admin.host) || !isLoopback(hostname)) return [];
  const message =
    `after the sign-in, the provider sends the browser to ${admin.publicUrl}/oidc/callback, which other hosts cannot reach; ` +
    'set the URL under which operators open the console';
  return [{ path: ['admin', 'publicUrl'], related: [['admin', 'host']], message }];
}

function repeatedSegment({ environments, standard }: Config): readonly ConfigWarning[] {
  return environments.all.flatMap((environment) => {
    const { name, origin, basePath, segment, prefixes } = environment;
    const index =
      segment === ''
        ? endOf(basePath, versionOf(environment, 'initiatePayment'))
        : `${basePath}/`.indexOf(`/${segment}/`);
    if (index < 0) return [];
    const ofEnvironment = segment === '' ? 'version of this environment' : 'segment of this environment';
    const what = segment !== '' && segment === standard.segment ? 'standard segment' : ofEnvironment;
    const message =
      `the path contains the ${what}, which the gateway appends: requests go to ${origin}${prefixes.initiatePayment}/payments/...; ` +
      `remove ${basePath.slice(index)} from baseUrl, or correct environments.${name}.segment and pathVersion`;
    const related = [
      ['standard', 'segment'],
      ['environments', name, 'segment'],
      ['environments', name, 'pathVersion'],
    ];
    return [{ path: ['environments', name, 'baseUrl'], related, message }];
  });
}

/** Where the path ends with this version; -1 if it does not. */
const endOf = (path: string, version: string) =>
  version !== '' && path.endsWith(`/${version}`) ? path.length - version.length - 1 : -1;

function secretsInTheFile({ environments }: Config): readonly ConfigWarning[] {
  return environments.all.flatMap((environment) =>
    (['headers', 'query'] as const).flatMap((kind) =>
      Object.entries(environment[kind]).flatMap(([field, value]) => {
        if (typeof value !== 'string' || !saysSecret(field)) return [];
        const path = ['environments', environment.name, kind, field];
        const message =
          'the name says that this text is a secret; write it into a file or an environment variable, and { file: PATH } or { env: NAME } here';
        return [{ path, message }];
      }),
    ),
  );
}

function clientsOfInactiveEnvironments({ clients, environments }: Config): readonly ConfigWarning[] {
  return clients.flatMap(({ name, environments: allowed }, index) => {
    if (allowed.includes(environments.active)) return [];
    const [only = '', ...others] = allowed;
    const consequence =
      others.length === 0
        ? `new payments of ${name} go to ${only}, although ${environments.active} is active`
        : `new payments of ${name} are refused unless they have the header Penstock-Environment`;
    return [
      {
        path: ['clients', index, 'environments'],
        message: `the active environment (environments.active: ${environments.active}) is not in this list: ${consequence}; add it, or remove the list`,
      },
    ];
  });
}

function stateInMemory({ state }: Config): readonly ConfigWarning[] {
  if (state.postgres !== null || state.file !== null) return [];
  const message =
    'the database is in memory: after a restart, a repeated payment is sent to the bank again; set state.file or state.postgres';
  return [{ path: ['state'], message }];
}

function webhooksWithoutKey({ clients, state }: Config): readonly ConfigWarning[] {
  const hasWebhooks = clients.some(({ notifications }) => notifications);
  const isStored = state.postgres !== null || state.file !== null;
  if (!hasWebhooks || !isStored || state.encryptionKeyFile !== null) return [];
  const message =
    'clients have webhooks, but without this key the gateway stores no access tokens and no fields that callerHeaders and pollHeaders name, and offers no webhooks for requests with them; set a key file';
  return [{ path: ['state', 'encryptionKeyFile'], message }];
}

function payerInPolls({ environments }: Config): readonly ConfigWarning[] {
  return environments.all.flatMap((environment) =>
    (['callerHeaders', 'pollHeaders'] as const).flatMap((setting) => {
      const at = environment[setting].indexOf('psu-ip-address');
      const message =
        'polls with this field claim that the payer is present, although no payer waits; remove it unless the bank refuses all reads without it and has agreed to this';
      return at < 0 ? [] : [{ path: ['environments', environment.name, setting, at], message }];
    }),
  );
}

function missingStateFolder({ state }: Config, { read }: WarningContext): readonly ConfigWarning[] {
  if (!read || state.file === null) return [];
  const folder = dirname(state.file);
  if (existsSync(folder)) return [];
  const message = `ENOENT: ${folder}; create this folder for the user that runs the gateway, or correct the path`;
  return [{ path: ['state', 'file'], message }];
}

/** The standard demands it of the URI; a bank may ignore one of another domain. */
function notificationsOfAnotherDomain(
  { environments, notifications: { publicUrl } }: Config,
  { read }: WarningContext,
): readonly ConfigWarning[] {
  if (!read || publicUrl === undefined) return [];
  const { hostname } = new URL(publicUrl);
  return environments.all.flatMap(({ name, bankNotifications, tls }) => {
    if (bankNotifications !== 'receive' || tls?.certFile === undefined) return [];
    const names = certificateNames(read(tls.certFile));
    if (names.some((certified) => isInDomain(hostname, certified))) return [];
    const message =
      `${hostname} does not belong to a domain of the client certificate of ${name} (${names.join(', ') || 'it names none'}), ` +
      'so the bank may send no notifications; use a host of such a domain';
    return [
      {
        path: ['notifications', 'publicUrl'],
        related: [['environments', name, 'tls', 'certFile']],
        message,
      },
    ];
  });
}

/** What a signature must cover if the request has it: NextGenPSD2 XS2A, implementation guidelines, section 12. */
const mustBeSigned = ['digest', 'x-request-id', 'psu-id', 'psu-corporate-id', 'tpp-redirect-uri'];

const incompleteSignatures = ({ environments }: Config): readonly ConfigWarning[] =>
  environments.all.flatMap(({ name, signing }) => {
    const missing = signing ? mustBeSigned.filter((field) => !signing.headers.includes(field)) : [];
    if (missing.length === 0) return [];
    const path = ['environments', name, 'signing', 'headers'];
    const message = `the standard requires that a signature also covers ${missing.join(', ')}; add this, unless the bank refuses it`;
    return [{ path, message }];
  });

function expiringCertificates(config: Config, { read }: WarningContext): readonly ConfigWarning[] {
  if (!read) return [];
  const check = (environment: string, use: CertificateUse, file: string | undefined, path: SettingPath) => {
    if (file === undefined) return [];
    const text = expiryWarning({ environment, use, info: parseCertificate(read(file)) }, Date.now());
    return text === undefined ? [] : [{ path, message: `${text}; replace the file before that` }];
  };
  return [
    ...configuredListeners(config).flatMap(({ path, use, tls }) =>
      check('', use, tls?.certFile, [...path, 'tls', 'certFile']),
    ),
    ...config.environments.all.flatMap(({ name, tls, signing }) => [
      ...check(name, 'qwac', tls?.certFile, ['environments', name, 'tls', 'certFile']),
      ...check(name, 'qseal', signing?.certFile, ['environments', name, 'signing', 'certFile']),
    ]),
  ];
}
