/** Cross-checks: settings that contradict each other although each is valid by itself. */

import { resolve } from 'node:path';
import type { ReadFile } from '../certificates/file-watcher.ts';
import { type ConfigError, formatPath } from './config-errors.ts';
import { closestName } from './did-you-mean.ts';
import type { EnvironmentVariables } from './environment-variables.ts';
import type { SettingPath } from './object-path.ts';
import { postgresUrls } from './postgres-urls.ts';
import {
  configuredListeners,
  hasNamedOperators,
  listenUrl,
  noActiveEnvironment,
  shareAddress,
} from './resolve-defaults.ts';
import type { Config, EnvironmentSettings } from './schema.ts';
import { redisUrl } from './sections/state.ts';
import { fingerprintDigits, isLoopback } from './values.ts';

/** Looks for one kind of contradiction. Its errors name the setting that should change. */
export type CrossCheck = (config: Config, context: CrossCheckContext) => readonly ConfigError[];

/** Facts that are not in the configuration itself. */
export interface CrossCheckContext {
  /** The name of the configuration file, if there is one. */
  readonly file?: string | undefined;
  /** Whether PENSTOCK_ADMIN_TOKEN contains a token. */
  readonly adminToken: boolean;
  /** Whether PENSTOCK_ADMIN_OIDC_CLIENT_SECRET contains a secret. */
  readonly oidcClientSecret: boolean;
  /** All environments in the settings, including invalid ones. */
  readonly environmentNames: readonly string[];
  isFromVariable(path: SettingPath): boolean;
  /** Whether the file or an environment variable contains a valid value of the setting. */
  isWritten(path: SettingPath): boolean;
  readonly variables: EnvironmentVariables;
  /** Reads the files that settings name; without it, they and the variables that settings name are not checked. @throws Error if one cannot be read */
  readonly read?: ReadFile | undefined;
}

/** The checks of the listeners, the operators and clients, the environments and the state. */
export const settingCrossChecks: readonly CrossCheck[] = [
  sharedAddress,
  adminWithoutToken,
  signInWithoutRoles,
  proxyRolesWithoutProxies,
  oneHeaderForUserAndGroups,
  proxyCertificatesNeverRequested,
  duplicateOperators,
  reservedOperatorNames,
  duplicateClients,
  clientsWithoutCredential,
  certificatesNeverRequested,
  certificatesWithoutAuthority,
  clientsOfUnknownEnvironments,
  noEnvironment,
  unknownActiveEnvironment,
  environmentsWithOneAddress,
  environmentsAtTheGateway,
  certificatesWithoutKey,
  tlsForPlainHttp,
  redisTlsWithoutTls,
  proxyCredentialsWithoutProxy,
  postgresAndFile,
  databaseInFileOfAnotherSetting,
  sharedPortWithoutPostgres,
  severalInstancesWithoutPostgres,
  passwordInFile,
];

function sharedAddress({ listen, admin }: Config): readonly ConfigError[] {
  if (!shareAddress(listen, admin)) return [];
  const related = [
    ['listen', 'port'],
    ['listen', 'host'],
    ['admin', 'host'],
  ];
  const message =
    'the admin listener has the same address and port as the public API (listen.port); set another port';
  return [{ path: ['admin', 'port'], related, message }];
}

function adminWithoutToken({ admin }: Config, { adminToken }: CrossCheckContext): readonly ConfigError[] {
  if (isLoopback(admin.host) || admin.tokenFile !== null || adminToken || hasNamedOperators(admin)) return [];
  const related = [
    ['admin', 'tokenFile'],
    ['admin', 'operators'],
    ['admin', 'trustedProxies'],
    ['admin', 'oidc'],
  ];
  const message =
    'other hosts can reach the admin listener, but no operator is configured; ' +
    'set admin.operators, admin.oidc, admin.tokenFile or PENSTOCK_ADMIN_TOKEN, or listen on 127.0.0.1';
  return [{ path: ['admin', 'host'], related, message }];
}

/** A sign-in that gives nobody a role refuses everybody. */
function signInWithoutRoles({ admin }: Config): readonly ConfigError[] {
  const ways = [
    ...(admin.trustedProxies.length > 0 ? ([['proxySignIn', admin.proxySignIn.roles]] as const) : []),
    ...(admin.oidc ? ([['oidc', admin.oidc.roles]] as const) : []),
  ];
  return ways
    .filter(([, { operate, read }]) => operate.length === 0 && read.length === 0)
    .map(([way]) => ({
      path: ['admin', way, 'roles'],
      related: [['admin', 'trustedProxies']],
      message: `no group has a role, so nobody could sign in; set admin.${way}.roles.operate or admin.${way}.roles.read`,
    }));
}

function proxyRolesWithoutProxies({
  admin: { trustedProxies, proxySignIn },
}: Config): readonly ConfigError[] {
  const { operate, read } = proxySignIn.roles;
  if (trustedProxies.length > 0 || operate.length + read.length === 0) return [];
  const path = ['admin', 'proxySignIn', 'roles'];
  const message =
    'no proxy is trusted, so its headers are ignored; set admin.trustedProxies, or remove proxySignIn';
  return [{ path, related: [['admin', 'trustedProxies']], message }];
}

function oneHeaderForUserAndGroups({ admin: { proxySignIn } }: Config): readonly ConfigError[] {
  const { userHeader, groupsHeader } = proxySignIn;
  if (userHeader.toLowerCase() !== groupsHeader.toLowerCase()) return [];
  const message = 'the same header as admin.proxySignIn.userHeader; set the one with the groups';
  return [
    {
      path: ['admin', 'proxySignIn', 'groupsHeader'],
      related: [['admin', 'proxySignIn', 'userHeader']],
      message,
    },
  ];
}

function proxyCertificatesNeverRequested({ admin: { trustedProxies, tls } }: Config): readonly ConfigError[] {
  if (tls && tls.clientCertificate !== 'off') return [];
  const message =
    'the admin listener does not request client certificates; set admin.tls with clientCaFile, or name the proxy by its address';
  return trustedProxies.flatMap((proxy, index) =>
    fingerprintDigits(proxy) === undefined
      ? []
      : [{ path: ['admin', 'trustedProxies', index], related: [['admin', 'tls']], message }],
  );
}

function duplicateOperators({ admin: { operators } }: Config): readonly ConfigError[] {
  const names = duplicates(operators, ({ name }) => name);
  const tokens = duplicates(operators, ({ tokenSha256 }) => tokenSha256);
  return [
    ...names.map(({ index, first }) => ({
      path: ['admin', 'operators', index, 'name'],
      related: [['admin', 'operators', first]],
      message: `same name as admin.operators[${first}]; the audit log identifies operators by name, so choose another one`,
    })),
    ...tokens.map(({ index, first }) => ({
      path: ['admin', 'operators', index, 'tokenSha256'],
      related: [['admin', 'operators', first]],
      message: `same token as admin.operators[${first}]; give each operator a separate token`,
    })),
  ];
}

/** The audit log would not distinguish these operators from somebody else. */
function reservedOperatorNames(
  { admin: { operators, tokenFile } }: Config,
  { adminToken }: CrossCheckContext,
): readonly ConfigError[] {
  const hasSharedToken = adminToken || tokenFile !== null;
  return operators.flatMap(({ name }, index) => {
    const path = ['admin', 'operators', index, 'name'];
    if (name === 'gateway')
      return [{ path, message: 'the audit log uses this name for the gateway itself; choose another one' }];
    if (name !== 'admin' || !hasSharedToken) return [];
    const message =
      'the audit log uses this name for the operator with the shared token (admin.tokenFile or PENSTOCK_ADMIN_TOKEN); choose another one';
    return [{ path, related: [['admin', 'tokenFile']], message }];
  });
}

function duplicateClients({ clients }: Config): readonly ConfigError[] {
  const names = duplicates(clients, ({ name }) => name).map(({ index, first }) => ({
    path: ['clients', index, 'name'],
    related: [['clients', first, 'name']],
    message: `same name as clients[${first}]; choose another name`,
  }));
  const credentials = (['apiKeySha256', 'certificateSha256'] as const).flatMap((key) =>
    duplicates(clients, (client) => client[key]).map(({ index, first }) => ({
      path: ['clients', index, key],
      related: [['clients', first, key]],
      message: `same value as clients[${first}].${key}; give each client its own`,
    })),
  );
  return [...names, ...credentials];
}

function clientsWithoutCredential({ clients }: Config): readonly ConfigError[] {
  const message = 'the client has no credential; set apiKeySha256 or certificateSha256';
  return clients.flatMap(({ apiKeySha256, certificateSha256 }, index) => {
    if (apiKeySha256 !== undefined || certificateSha256 !== undefined) return [];
    const path = ['clients', index];
    return [
      {
        path,
        related: [
          [...path, 'apiKeySha256'],
          [...path, 'certificateSha256'],
        ],
        message,
      },
    ];
  });
}

function certificatesNeverRequested({ clients, listen }: Config): readonly ConfigError[] {
  if (listen.tls && listen.tls.clientCertificate !== 'off') return [];
  const message =
    'the listener does not request client certificates; set listen.tls.clientCertificate to optional or required';
  return clients.flatMap(({ certificateSha256 }, index) =>
    certificateSha256 === undefined
      ? []
      : [{ path: ['clients', index, 'certificateSha256'], related: [['listen', 'tls']], message }],
  );
}

function certificatesWithoutAuthority(config: Config): readonly ConfigError[] {
  return configuredListeners(config).flatMap(({ path, tls }) => {
    if (!tls || tls.clientCertificate === 'off' || tls.clientCaFile !== undefined) return [];
    const message = `client certificates are requested, but no CA is trusted; set ${path.join('.')}.tls.clientCaFile`;
    return [
      {
        path: [...path, 'tls', 'clientCertificate'],
        related: [[...path, 'tls', 'clientCaFile']],
        message,
      },
    ];
  });
}

function clientsOfUnknownEnvironments(
  { clients }: Config,
  { environmentNames }: CrossCheckContext,
): readonly ConfigError[] {
  if (environmentNames.length === 0) return [];
  return clients.flatMap(({ environments }, index) =>
    environments.flatMap((name, at) =>
      environmentNames.includes(name)
        ? []
        : [
            {
              path: ['clients', index, 'environments', at],
              message: unknownEnvironment(name, environmentNames),
            },
          ],
    ),
  );
}

function noEnvironment(_: Config, { environmentNames }: CrossCheckContext): readonly ConfigError[] {
  if (environmentNames.length > 0) return [];
  const message =
    'no environment is configured; add environments: { sandbox: { baseUrl: https://api.bank.example/psd2 } }, ' +
    'or set PENSTOCK_ENVIRONMENTS_SANDBOX_BASE_URL';
  return [{ path: ['environments'], message }];
}

function unknownActiveEnvironment(
  { environments: { active } }: Config,
  { environmentNames }: CrossCheckContext,
): readonly ConfigError[] {
  if (environmentNames.length === 0 || environmentNames.includes(active)) return [];
  const isMissing = active === noActiveEnvironment;
  if (isMissing && environmentNames.length === 1) return [];
  const message = isMissing
    ? `required if there are several environments; expected ${environmentNames.join(' or ')}`
    : unknownEnvironment(active, environmentNames);
  return [{ path: ['environments', 'active'], message }];
}

function unknownEnvironment(name: string, known: readonly string[]): string {
  const similar = known.length > 1 ? closestName(name, known) : undefined;
  const hint = similar ? ` (did you mean ${similar}?)` : '';
  return `unknown environment; expected ${known.join(' or ')}${hint}`;
}

function environmentsWithOneAddress({ environments: { all } }: Config): readonly ConfigError[] {
  return duplicates(all, addressOf).map(({ index, first }) => {
    const [name = '', other = ''] = [all[index]?.name, all[first]?.name];
    return {
      path: ['environments', name, 'baseUrl'],
      related: [
        ['standard', 'segment'],
        ...[name, other].flatMap((one) => distinctions.map((setting) => ['environments', one, setting])),
      ],
      message: `same URL as environments.${other}.baseUrl, and the same segment, pathVersion, query and headers: the bank cannot distinguish the two; change one of them`,
    };
  });
}

const distinctions = ['baseUrl', 'segment', 'pathVersion', 'query', 'headers'] as const;

/** All that the bank, or a hub of several banks, can distinguish environments by. */
function addressOf({ origin, prefixes, query, headers }: EnvironmentSettings): string {
  const sorted = (values: EnvironmentSettings['headers']) =>
    Object.entries(values)
      .map(([name, value]) => JSON.stringify([name.toLowerCase(), value]))
      .sort();
  return JSON.stringify([origin, prefixes, sorted(query), sorted(headers)]);
}

function environmentsAtTheGateway({ environments, listen }: Config): readonly ConfigError[] {
  const message = 'this is the address of the gateway itself (section listen); write the address of the bank';
  const related = ['port', 'host', 'publicUrl'].map((name) => ['listen', name]);
  return environments.all.flatMap(({ name, origin, basePath }) =>
    origin === listenUrl(listen) || origin + basePath === listen.publicUrl
      ? [{ path: ['environments', name, 'baseUrl'], related, message }]
      : [],
  );
}

function certificatesWithoutKey({ environments, state }: Config): readonly ConfigError[] {
  const all = [
    ...environments.all.map(({ name, tls }) => ({ path: ['environments', name, 'tls'], tls })),
    { path: ['state', 'redisTls'], tls: state.redisTls },
  ];
  return all.flatMap(({ path, tls }) => {
    if (!tls || (tls.certFile === undefined) === (tls.keyFile === undefined)) return [];
    const [present, missing, what] =
      tls.keyFile === undefined
        ? ['certFile', 'keyFile', 'the private key of this certificate']
        : ['keyFile', 'certFile', 'the certificate of this key'];
    const message = `requires ${missing}, ${what}; add ${formatPath([...path, missing])}`;
    return [{ path: [...path, present], related: [[...path, missing]], message }];
  });
}

function tlsForPlainHttp({ environments }: Config): readonly ConfigError[] {
  const message = 'baseUrl is an http: URL, which does not use TLS; remove the TLS settings, or use https:';
  return environments.all.flatMap(({ name, tls, origin }) =>
    tls && !origin.startsWith('https:')
      ? [{ path: ['environments', name, 'tls'], related: [['environments', name, 'baseUrl']], message }]
      : [],
  );
}

function redisTlsWithoutTls({ state }: Config): readonly ConfigError[] {
  if (state.redisTls === null) return [];
  const urls =
    state.redis === null ? [] : state.redis.kind === 'single' ? [state.redis.url] : state.redis.urls;
  if (urls.length > 0 && urls.every((url) => url.startsWith('rediss:'))) return [];
  const message =
    'state.redis has no rediss: URL, so its connections do not use TLS; write rediss:, or remove this setting';
  return [{ path: ['state', 'redisTls'], related: [['state', 'redis']], message }];
}

function proxyCredentialsWithoutProxy({ upstream }: Config): readonly ConfigError[] {
  if (upstream.proxyCredentialsFile === null || upstream.proxy !== null) return [];
  const message = 'there is no proxy; set upstream.proxy, or remove this setting';
  return [{ path: ['upstream', 'proxyCredentialsFile'], related: [['upstream', 'proxy']], message }];
}

function postgresAndFile({ state }: Config): readonly ConfigError[] {
  if (state.postgres === null || state.file === null) return [];
  const message =
    'state.file and state.postgres cannot be set together: each is the whole database; remove one of them';
  return [{ path: ['state', 'file'], related: [['state', 'postgres']], message }];
}

/** SQLite would refuse the file, or create a database where a key should be. */
function databaseInFileOfAnotherSetting(config: Config, { file }: CrossCheckContext): readonly ConfigError[] {
  const { state } = config;
  if (state.file === null) return [];
  const database = resolve(state.file);
  const isConfig = file !== undefined && resolve(file) === database;
  const names = [...(isConfig ? ['the configuration'] : []), ...settingsOfFile(config, database)];
  return names.map((name) => ({
    path: ['state', 'file'],
    message: `this is also the file of ${name}; name another file for the database`,
  }));
}

/** The keys of the settings that name the file, such as `tokenFile`. */
function settingsOfFile(section: unknown, file: string): readonly string[] {
  if (typeof section !== 'object' || section === null) return [];
  return Object.entries(section).flatMap(([key, value]) =>
    typeof value === 'string' && key.endsWith('File') && resolve(value) === file
      ? [key]
      : settingsOfFile(value, file),
  );
}

function sharedPortWithoutPostgres({ listen, state }: Config): readonly ConfigError[] {
  if (!listen.reusePort || state.postgres !== null) return [];
  const message =
    'processes that share a port need one database, otherwise a payment could be sent twice; set state.postgres';
  return [{ path: ['listen', 'reusePort'], related: [['state', 'postgres']], message }];
}

function severalInstancesWithoutPostgres({ shaping, state }: Config): readonly ConfigError[] {
  if (shaping.expectedInstances === 1 || state.postgres !== null) return [];
  const message =
    'several instances need one database, otherwise a payment could be sent twice; set state.postgres';
  return [{ path: ['shaping', 'expectedInstances'], related: [['state', 'postgres']], message }];
}

function passwordInFile({ state }: Config, { isFromVariable }: CrossCheckContext): readonly ConfigError[] {
  const redisUrls =
    state.redis === null ? [] : state.redis.kind === 'single' ? [state.redis.url] : state.redis.urls;
  const redis = redisUrls.map(redisUrl).some((url) => url?.username || url?.password);
  const [database] = (state.postgres === null ? undefined : postgresUrls(state.postgres)) ?? [];
  const parameters = [...(database?.searchParams.keys() ?? [])];
  const postgres = database?.password || parameters.some((name) => /password/i.test(name));
  const found = [redis ? 'redis' : [], postgres ? 'postgres' : []].flat();
  return found
    .filter((name) => !isFromVariable(['state', name]))
    .map((name) => ({
      path: ['state', name],
      message: `credentials are not allowed in the configuration file; set the whole URL as PENSTOCK_STATE_${name.toUpperCase()}`,
    }));
}

/** The items with the same key as an earlier item, each with the index of the first. */
function duplicates<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string | undefined,
): readonly { readonly index: number; readonly first: number }[] {
  const keys = items.map(keyOf);
  return keys.flatMap((key, index) => {
    const first = keys.indexOf(key);
    return key !== undefined && first < index ? [{ index, first }] : [];
  });
}
