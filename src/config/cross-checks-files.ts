/** Cross-checks of the files that settings name: certificates, keys and secrets that cannot be read or used. */

import { isAbsolute, resolve } from 'node:path';
import type { ReadFile } from '../certificates/file-watcher.ts';
import { validateSigningKeyPair } from '../certificates/signature-algorithms.ts';
import { type KeyPair, type KeyPairError, validateTls } from '../certificates/validate-key-pair.ts';
import type { ConfigError } from './config-errors.ts';
import type { CrossCheck, CrossCheckContext } from './cross-checks.ts';
import type { SettingPath } from './object-path.ts';
import type { Config } from './schema.ts';

export const fileCrossChecks: readonly CrossCheck[] = [
  unreadableSecrets,
  unusableListenerCertificate,
  unusableClientCertificates,
  unusableSigningKeys,
];

function unreadableSecrets(
  { admin, state }: Config,
  { adminToken, read }: CrossCheckContext,
): readonly ConfigError[] {
  return [
    ...openFile(['admin', 'tokenFile'], adminToken ? null : admin.tokenFile, read).errors,
    ...openFile(['state', 'encryptionKeyFile'], state.encryptionKeyFile, read).errors,
  ];
}

function unusableListenerCertificate(
  { listen: { tls } }: Config,
  { read }: CrossCheckContext,
): readonly ConfigError[] {
  const path = ['listen', 'tls'];
  const cert = openFile([...path, 'certFile'], tls?.certFile, read);
  const key = openFile([...path, 'keyFile'], tls?.keyFile, read);
  const ca = openFile([...path, 'clientCaFile'], tls?.clientCaFile, read);
  return errorsOf({ cert, key, ca }, (pair) => validateTls({ pair, ca: ca.content }, Date.now()));
}

function unusableClientCertificates(
  { environments }: Config,
  { read }: CrossCheckContext,
): readonly ConfigError[] {
  return environments.all.flatMap(({ name, tls }) => {
    const path = ['environments', name, 'tls'];
    const cert = openFile([...path, 'certFile'], tls?.certFile, read);
    const key = openFile([...path, 'keyFile'], tls?.keyFile, read);
    const ca = openFile([...path, 'caFile'], tls?.caFile, read);
    return errorsOf({ cert, key, ca }, (pair) => validateTls({ pair, ca: ca.content }, Date.now()));
  });
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

/** A file that a setting names. No content and no errors if the setting is absent or `read` is. */
interface OpenedFile {
  readonly path: SettingPath;
  readonly content?: Buffer;
  readonly errors: readonly ConfigError[];
}

function openFile(
  path: SettingPath,
  file: string | null | undefined,
  read: ReadFile | undefined,
): OpenedFile {
  if (!read || file === undefined || file === null) return { path, errors: [] };
  try {
    return { path, content: read(file), errors: [] };
  } catch {
    const message = 'this file cannot be read; name one that is there and that the gateway may read';
    return { path, errors: [{ path, message: message + baseFolderHint(file) }] };
  }
}

/** Does not quote the setting's value: it may be the secret itself, entered by mistake instead of the file name. */
const baseFolderHint = (file: string) =>
  isAbsolute(file) ? '' : `; a relative path begins at the working directory, ${resolve()}`;

function errorsOf(
  files: { readonly cert: OpenedFile; readonly key: OpenedFile; readonly ca?: OpenedFile },
  validate: (pair: KeyPair | undefined) => readonly KeyPairError[],
): readonly ConfigError[] {
  const { cert, key, ca } = files;
  const pair = cert.content && key.content ? { cert: cert.content, key: key.content } : undefined;
  const unusable = validate(pair).map(({ file, message }) => {
    return { path: files[file]?.path ?? cert.path, message: `this file ${message}` };
  });
  return [cert, key, ca].flatMap((opened) => opened?.errors ?? []).concat(unusable);
}
