/** Cross-checks of the files that settings name: certificates, keys and secrets that cannot be read or used. */

import { isAbsolute, resolve } from 'node:path';
import type { ReadFile } from '../certificates/file-watcher.ts';
import { validateSigningKeyPair } from '../certificates/signature-algorithms.ts';
import { type KeyPair, type KeyPairError, validateTls } from '../certificates/validate-key-pair.ts';
import type { ConfigError } from './config-errors.ts';
import { readProfile } from './contract-profile.ts';
import type { CrossCheck, CrossCheckContext } from './cross-checks.ts';
import { parseEncryptionKeys } from './encryption-keys.ts';
import { readFixedValues } from './fixed-values.ts';
import type { SettingPath } from './object-path.ts';
import { configuredListeners } from './resolve-defaults.ts';
import type { Config } from './schema.ts';
import { parseWebhookSecrets } from './webhook-secrets.ts';

export const fileCrossChecks: readonly CrossCheck[] = [
  unusableTokenFile,
  unusableEncryptionKeys,
  unusableWebhookSecrets,
  unusableListenerCertificate,
  unusableProviderFiles,
  unusableClientCertificates,
  unusableProxyCredentials,
  unusableSigningKeys,
  unusableProfiles,
  unusableFixedValues,
];

/** The text for a file that cannot be read: `ENOENT: PATH`. */
export function readErrorText(cause: unknown, file: string): string {
  const system = [cause, cause instanceof Error ? cause.cause : undefined].find(
    (error) => error instanceof Error && 'code' in error,
  );
  const code = system instanceof Error && 'code' in system ? String(system.code) : 'cannot be read';
  return `${code}: ${file}${isAbsolute(file) ? '' : ` (relative to the working directory, ${resolve()})`}`;
}

function unusableTokenFile(
  { admin }: Config,
  { adminToken, read }: CrossCheckContext,
): readonly ConfigError[] {
  const opened = openFile(['admin', 'tokenFile'], adminToken ? null : admin.tokenFile, read, 'secret');
  const text = opened.content?.toString();
  if (text?.trim() === '')
    return [{ path: opened.path, message: 'the file is empty; write the token of the operator into it' }];
  if (text === undefined || oneToken.test(text)) return opened.errors;
  const message = 'the file must contain one token, without spaces and other lines';
  return [{ path: opened.path, message }];
}

/** What a bearer token can contain, and a line break. */
const oneToken = /^[\x21-\x7e]+\r?\n?$/;

function unusableEncryptionKeys({ state }: Config, { read }: CrossCheckContext): readonly ConfigError[] {
  const { path, content, errors } = openFile(
    ['state', 'encryptionKeyFile'],
    state.encryptionKeyFile,
    read,
    'secret',
  );
  try {
    if (content) parseEncryptionKeys(content.toString());
    return errors;
  } catch (cause) {
    return [{ path, message: `the file cannot be used: ${cause instanceof Error ? cause.message : cause}` }];
  }
}

function unusableWebhookSecrets({ clients }: Config, { read }: CrossCheckContext): readonly ConfigError[] {
  return clients.flatMap(({ notifications }, index) => {
    const settingPath = ['clients', index, 'notifications', 'secretFile'];
    const { path, content, errors } = openFile(settingPath, notifications?.secretFile, read, 'secret');
    try {
      if (content) parseWebhookSecrets(content.toString());
      return errors;
    } catch (cause) {
      return [
        { path, message: `the file cannot be used: ${cause instanceof Error ? cause.message : cause}` },
      ];
    }
  });
}

function unusableListenerCertificate(config: Config, { read }: CrossCheckContext): readonly ConfigError[] {
  return configuredListeners(config).flatMap(({ path: listener, tls }) => {
    const path = [...listener, 'tls'];
    const cert = openFile([...path, 'certFile'], tls?.certFile, read);
    const key = openFile([...path, 'keyFile'], tls?.keyFile, read);
    const ca = openFile([...path, 'clientCaFile'], tls?.clientCaFile, read);
    return errorsOf({ cert, key, ca }, (pair) => validateTls({ pair, ca: ca.content }, Date.now()));
  });
}

function unusableProviderFiles(
  { admin: { oidc } }: Config,
  { oidcClientSecret, read }: CrossCheckContext,
): readonly ConfigError[] {
  const path = ['admin', 'oidc'];
  const secretFile = oidcClientSecret ? null : oidc?.clientSecretFile;
  const secret = openFile([...path, 'clientSecretFile'], secretFile, read, 'secret');
  const ca = openFile([...path, 'caFile'], oidc?.caFile, read);
  const unset = { path, errors: [] };
  const isEmpty = secret.content?.toString().trim() === '';
  return [
    ...secret.errors,
    ...(isEmpty
      ? [{ path: secret.path, message: 'the file is empty; write the client secret into it' }]
      : []),
    ...errorsOf({ cert: unset, key: unset, ca }, () => validateTls({ ca: ca.content }, Date.now())),
  ];
}

function unusableClientCertificates(
  { environments, state }: Config,
  { read }: CrossCheckContext,
): readonly ConfigError[] {
  const all = [
    ...environments.all.map(({ name, tls }) => ({ path: ['environments', name, 'tls'], tls })),
    { path: ['state', 'redisTls'], tls: state.redisTls },
  ];
  return all.flatMap(({ path, tls }) => {
    const cert = openFile([...path, 'certFile'], tls?.certFile, read);
    const key = openFile([...path, 'keyFile'], tls?.keyFile, read);
    const ca = openFile([...path, 'caFile'], tls?.caFile, read);
    return errorsOf({ cert, key, ca }, (pair) => validateTls({ pair, ca: ca.content }, Date.now()));
  });
}

function unusableProxyCredentials({ upstream }: Config, { read }: CrossCheckContext): readonly ConfigError[] {
  const settingPath = ['upstream', 'proxyCredentialsFile'];
  const { path, content, errors } = openFile(settingPath, upstream.proxyCredentialsFile, read, 'secret');
  if (!content || /^[^:\r\n]+:[^\r\n]+\r?\n?$/.test(content.toString())) return errors;
  return [{ path, message: 'the file must contain one line with the user and the password: user:password' }];
}

function unusableSigningKeys({ environments }: Config, { read }: CrossCheckContext): readonly ConfigError[] {
  return environments.all.flatMap(({ name, signing }) => {
    const path = ['environments', name, 'signing'];
    const cert = openFile([...path, 'certFile'], signing?.certFile, read);
    const key = openFile([...path, 'keyFile'], signing?.keyFile, read);
    return errorsOf({ cert, key }, (pair) =>
      pair && signing ? validateSigningKeyPair(pair, signing.algorithm, Date.now()) : [],
    );
  });
}

function unusableProfiles({ environments }: Config, { read }: CrossCheckContext): readonly ConfigError[] {
  return environments.all.flatMap(({ name, contract }) => {
    const settingPath = ['environments', name, 'contract', 'profile'];
    const { path, content, errors } = openFile(settingPath, contract.profile, read);
    const result = content && readProfile(content, contract.profile ?? '');
    if (!result || 'profile' in result) return errors;
    return result.errors.map((why) => ({ path, message: `the file has a mistake: ${why}` }));
  });
}

function unusableFixedValues({ environments }: Config, { read }: CrossCheckContext): readonly ConfigError[] {
  if (!read) return [];
  return environments.all.flatMap((environment) =>
    readFixedValues(environment, environments.variables, read).errors.map(
      ({ path, message, cause, unreadable }) => ({
        path,
        message: unreadable === undefined ? message : readErrorText(cause, unreadable),
      }),
    ),
  );
}

/** A file that a setting names. No content and no errors if the setting is absent or `read` is. */
interface OpenedFile {
  readonly path: SettingPath;
  readonly content?: Buffer;
  readonly errors: readonly ConfigError[];
}

/** @param kind a `secret` may have been entered by mistake instead of its file: a relative path is not quoted then */
function openFile(
  path: SettingPath,
  file: string | null | undefined,
  read: ReadFile | undefined,
  kind: 'secret' | 'certificate' = 'certificate',
): OpenedFile {
  if (!read || file === undefined || file === null) return { path, errors: [] };
  try {
    return { path, content: read(file), errors: [] };
  } catch (cause) {
    const name = kind === 'secret' && !isAbsolute(file) ? 'the file' : file;
    return { path, errors: [{ path, message: readErrorText(cause, name) }] };
  }
}

function errorsOf(
  files: { readonly cert: OpenedFile; readonly key: OpenedFile; readonly ca?: OpenedFile },
  validate: (pair: KeyPair | undefined) => readonly KeyPairError[],
): readonly ConfigError[] {
  const { cert, key, ca } = files;
  const pair = cert.content && key.content ? { cert: cert.content, key: key.content } : undefined;
  const unusable = validate(pair).map(({ file, message }) => {
    return { path: files[file]?.path ?? cert.path, message: `the file ${message}` };
  });
  return [cert, key, ca].flatMap((opened) => opened?.errors ?? []).concat(unusable);
}
