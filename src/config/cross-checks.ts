/** Cross-checks: settings that contradict each other although each is valid by itself. */

import type { ReadFile } from '../certificates/file-watcher.ts';
import type { ConfigError } from './config-errors.ts';
import type { SettingPath } from './object-path.ts';
import { noActiveEnvironment, shareAddress } from './resolve-defaults.ts';
import type { Config } from './schema.ts';
import { redisUrl } from './sections/state.ts';
import { isLoopback } from './values.ts';

/** Looks for one kind of contradiction. Its errors name the setting that should change. */
export type CrossCheck = (config: Config, context: CrossCheckContext) => readonly ConfigError[];

/** Facts that are not in the configuration itself. */
export interface CrossCheckContext {
  /** Whether PENSTOCK_ADMIN_TOKEN contains a token. */
  readonly adminToken: boolean;
  /** All environments in the settings, including invalid ones. */
  readonly environmentNames: readonly string[];
  isFromVariable(path: SettingPath): boolean;
  /** Whether the file or an environment variable contains a valid value of the setting. */
  isWritten(path: SettingPath): boolean;
  /** Reads the files that settings name; without it they are not checked. @throws Error if one cannot be read */
  readonly read?: ReadFile | undefined;
}

/** The checks of the listeners, the operators and clients, the environments and the state. */
export const settingCrossChecks: readonly CrossCheck[] = [
  sharedAddress,
  adminWithoutToken,
  duplicateOperators,
  duplicateClients,
  clientsWithoutCredential,
  certificatesNeverRequested,
  certificatesWithoutAuthority,
  clientsOfUnknownEnvironments,
  noEnvironment,
  unknownActiveEnvironment,
  environmentsWithOneAddress,
  certificatesWithoutKey,
  tlsForPlainHttp,
  redisAndFile,
  durabilityOfMemory,
  sharedPortWithoutRedis,
  severalInstancesWithoutRedis,
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
    'TPP systems and operators cannot share one host and port; choose another port than listen.port';
  return [{ path: ['admin', 'port'], related, message }];
}

function adminWithoutToken({ admin }: Config, { adminToken }: CrossCheckContext): readonly ConfigError[] {
  if (isLoopback(admin.host) || admin.tokenFile !== null || adminToken || admin.operators.length > 0)
    return [];
  const related = [
    ['admin', 'tokenFile'],
    ['admin', 'operators'],
  ];
  const message =
    'operators can reach this from other machines, but none has a token; ' +
    'set admin.tokenFile, PENSTOCK_ADMIN_TOKEN or admin.operators, or listen on 127.0.0.1';
  return [{ path: ['admin', 'host'], related, message }];
}

function duplicateOperators({ admin: { operators } }: Config): readonly ConfigError[] {
  const names = duplicates(operators, ({ name }) => name);
  const tokens = duplicates(operators, ({ tokenSha256 }) => tokenSha256);
  return [
    ...names.map(({ index, first }) => ({
      path: ['admin', 'operators', index, 'name'],
      related: [['admin', 'operators', first]],
      message: `admin.operators[${first}] has this name already; the audit log must tell them apart`,
    })),
    ...tokens.map(({ index, first }) => ({
      path: ['admin', 'operators', index, 'tokenSha256'],
      related: [['admin', 'operators', first]],
      message: `admin.operators[${first}] has this token already; give each operator a token`,
    })),
  ];
}

function duplicateClients({ clients }: Config): readonly ConfigError[] {
  const names = duplicates(clients, ({ name }) => name).map(({ index, first }) => ({
    path: ['clients', index, 'name'],
    related: [['clients', first, 'name']],
    message: `clients[${first}] has this name already; choose another`,
  }));
  const credentials = (['apiKeySha256', 'certificateSha256'] as const).flatMap((key) =>
    duplicates(clients, (client) => client[key]).map(({ index, first }) => ({
      path: ['clients', index, key],
      related: [['clients', first, key]],
      message: `clients[${first}] has the same; give each client its own`,
    })),
  );
  return [...names, ...credentials];
}

function clientsWithoutCredential({ clients }: Config): readonly ConfigError[] {
  const message = 'nothing proves who this client is; give apiKeySha256 or certificateSha256';
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
    'the listener does not request certificates; set listen.tls.clientCertificate to optional or required';
  return clients.flatMap(({ certificateSha256 }, index) =>
    certificateSha256 === undefined
      ? []
      : [{ path: ['clients', index, 'certificateSha256'], related: [['listen', 'tls']], message }],
  );
}

function certificatesWithoutAuthority({ listen: { tls } }: Config): readonly ConfigError[] {
  if (!tls || tls.clientCertificate === 'off' || tls.clientCaFile !== undefined) return [];
  const message =
    'client certificates are requested, but no authority is trusted; set listen.tls.clientCaFile';
  const path = ['listen', 'tls', 'clientCertificate'];
  return [{ path, related: [['listen', 'tls', 'clientCaFile']], message }];
}

function clientsOfUnknownEnvironments(
  { clients }: Config,
  { environmentNames }: CrossCheckContext,
): readonly ConfigError[] {
  if (environmentNames.length === 0) return [];
  const message = `there is no environment of this name; write ${environmentNames.join(' or ')}`;
  return clients.flatMap(({ environments }, index) =>
    environments.flatMap((name, at) =>
      environmentNames.includes(name) ? [] : [{ path: ['clients', index, 'environments', at], message }],
    ),
  );
}

function noEnvironment(_: Config, { environmentNames }: CrossCheckContext): readonly ConfigError[] {
  if (environmentNames.length > 0) return [];
  const message =
    'at least one environment is needed; write environments: { sandbox: { baseUrl: https://api.bank.example/psd2 } }, ' +
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
  const problem = isMissing
    ? 'with several environments, one must be active'
    : 'there is no environment of this name';
  return [
    { path: ['environments', 'active'], message: `${problem}; write ${environmentNames.join(' or ')}` },
  ];
}

function environmentsWithOneAddress({ environments: { all } }: Config): readonly ConfigError[] {
  return duplicates(all, ({ origin, basePath }) => origin + basePath).map(({ index, first }) => {
    const [name = '', other = ''] = [all[index]?.name, all[first]?.name];
    return {
      path: ['environments', name, 'baseUrl'],
      related: [['environments', other, 'baseUrl']],
      message: `environment ${other} has the same address; a switch between them would change nothing`,
    };
  });
}

function certificatesWithoutKey({ environments }: Config): readonly ConfigError[] {
  const message = 'a certificate and its key go together; give both certFile and keyFile';
  return environments.all.flatMap(({ name, tls }) => {
    if (!tls || (tls.certFile === undefined) === (tls.keyFile === undefined)) return [];
    const path = ['environments', name, 'tls'];
    return [
      {
        path,
        related: [
          [...path, 'certFile'],
          [...path, 'keyFile'],
        ],
        message,
      },
    ];
  });
}

function tlsForPlainHttp({ environments }: Config): readonly ConfigError[] {
  const message =
    'baseUrl is a plain http: address, which does not use TLS settings; remove them or write https:';
  return environments.all.flatMap(({ name, tls, origin }) =>
    tls && !origin.startsWith('https:')
      ? [{ path: ['environments', name, 'tls'], related: [['environments', name, 'baseUrl']], message }]
      : [],
  );
}

function redisAndFile({ state }: Config): readonly ConfigError[] {
  if (state.redis === null || state.file === null) return [];
  const message = 'the state is stored in Redis or in a file, not in both; remove state.file or state.redis';
  return [{ path: ['state', 'file'], related: [['state', 'redis']], message }];
}

function durabilityOfMemory({ state }: Config): readonly ConfigError[] {
  if (state.durability !== 'required' || state.redis !== null || state.file !== null) return [];
  const message = 'the state is kept in memory, and a restart loses it; set state.redis or state.file';
  return [{ path: ['state', 'durability'], related: [['state', 'redis']], message }];
}

function sharedPortWithoutRedis({ listen, state }: Config): readonly ConfigError[] {
  if (!listen.reusePort || state.redis !== null) return [];
  const message =
    'processes that share a port must share their state, or a payment could be made twice; set state.redis';
  return [{ path: ['listen', 'reusePort'], related: [['state', 'redis']], message }];
}

function severalInstancesWithoutRedis({ shaping, state }: Config): readonly ConfigError[] {
  if (shaping.expectedInstances === 1 || state.redis !== null) return [];
  const message =
    'several instances must share their state, or a payment could be made twice; set state.redis';
  return [{ path: ['shaping', 'expectedInstances'], related: [['state', 'redis']], message }];
}

function passwordInFile({ state }: Config, { isFromVariable }: CrossCheckContext): readonly ConfigError[] {
  const path = ['state', 'redis'];
  if (state.redis === null || isFromVariable(path)) return [];
  const urls = state.redis.kind === 'single' ? [state.redis.url] : state.redis.urls;
  if (!urls.map(redisUrl).some((url) => url?.username || url?.password)) return [];
  const message = 'credentials must not be in this file; set the whole address as PENSTOCK_STATE_REDIS';
  return [{ path, message }];
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
