/** What the files say that settings name: certificates, keys and secrets that cannot be read or used. */

import { isAbsolute, resolve } from 'node:path';
import type { ReadFile } from '../../certificates/file-watcher.ts';
import { validateSigningKeyPair } from '../../certificates/signature-algorithms.ts';
import { type KeyPair, type KeyPairError, validateTls } from '../../certificates/validate-key-pair.ts';
import type { SettingPath } from '../object-path.ts';
import type { CrossCheck, CrossCheckError } from './contradiction.ts';

export const secretUnreadable: CrossCheck = ({ admin, state }, { adminToken, read }) => [
  ...opened(['admin', 'tokenFile'], adminToken ? null : admin.tokenFile, read).faults,
  ...opened(['state', 'encryptionKeyFile'], state.encryptionKeyFile, read).faults,
];

export const listenerCertificateUnusable: CrossCheck = ({ listen: { tls } }, { read }) => {
  const path = ['listen', 'tls'];
  const cert = opened([...path, 'certFile'], tls?.certFile, read);
  const key = opened([...path, 'keyFile'], tls?.keyFile, read);
  const ca = opened([...path, 'clientCaFile'], tls?.clientCaFile, read);
  return faultsOf({ cert, key, ca }, (pair) => validateTls({ pair, ca: ca.content }, Date.now()));
};

export const clientCertificateUnusable: CrossCheck = ({ environments }, { read }) =>
  environments.all.flatMap(({ name, tls }) => {
    const path = ['environments', name, 'tls'];
    const cert = opened([...path, 'certFile'], tls?.certFile, read);
    const key = opened([...path, 'keyFile'], tls?.keyFile, read);
    const ca = opened([...path, 'caFile'], tls?.caFile, read);
    return faultsOf({ cert, key, ca }, (pair) => validateTls({ pair, ca: ca.content }, Date.now()));
  });

export const sealUnusable: CrossCheck = ({ environments }, { read }) =>
  environments.all.flatMap(({ name, signing }) => {
    const path = ['environments', name, 'signing'];
    const cert = opened([...path, 'certFile'], signing?.certFile, read);
    const key = opened([...path, 'keyFile'], signing?.keyFile, read);
    return faultsOf({ cert, key }, (pair) =>
      pair && signing ? validateSigningKeyPair(pair, signing.algorithm, Date.now()) : [],
    );
  });

/** A file that a setting names: its content, or why there is none. */
interface Opened {
  readonly path: SettingPath;
  readonly content?: Buffer;
  readonly faults: readonly CrossCheckError[];
}

function opened(path: SettingPath, file: string | null | undefined, read: ReadFile | undefined): Opened {
  if (!read || file === undefined || file === null) return { path, faults: [] };
  try {
    return { path, content: read(file), faults: [] };
  } catch {
    const message = 'this file cannot be read; name one that is there and that the gateway may read';
    return { path, faults: [{ path, against: [], message: message + whereFrom(file) }] };
  }
}

/** The name itself is not told: it may be a secret that was put where the name of its file belongs. */
const whereFrom = (file: string) =>
  isAbsolute(file) ? '' : `; a relative path begins at the working directory, ${resolve()}`;

function faultsOf(
  files: { readonly cert: Opened; readonly key: Opened; readonly ca?: Opened },
  judge: (pair: KeyPair | undefined) => readonly KeyPairError[],
): readonly CrossCheckError[] {
  const { cert, key, ca } = files;
  const pair = cert.content && key.content ? { cert: cert.content, key: key.content } : undefined;
  const wrong = judge(pair).map(({ file, message }) => {
    return { path: files[file]?.path ?? cert.path, against: [], message: `this file ${message}` };
  });
  return [...[cert, key, ca].flatMap((file) => file?.faults ?? []), ...wrong];
}
