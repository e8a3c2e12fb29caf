/** What the files say that settings name: certificates, keys and secrets that cannot be read or used. */

import { isAbsolute, resolve } from 'node:path';
import { type KeyPair, type PairFault, tlsFaults } from '../../certificates/key-pair.ts';
import { sealFaults } from '../../certificates/seal-algorithms.ts';
import type { Read } from '../../certificates/watched-files.ts';
import type { Path } from '../path.ts';
import type { Check, Contradiction } from './contradiction.ts';

export const secretUnreadable: Check = ({ admin, state }, { adminToken, read }) => [
  ...opened(['admin', 'tokenFile'], adminToken ? null : admin.tokenFile, read).faults,
  ...opened(['state', 'encryptionKeyFile'], state.encryptionKeyFile, read).faults,
];

export const listenerCertificateUnusable: Check = ({ listen: { tls } }, { read }) => {
  const path = ['listen', 'tls'];
  const cert = opened([...path, 'certFile'], tls?.certFile, read);
  const key = opened([...path, 'keyFile'], tls?.keyFile, read);
  const ca = opened([...path, 'clientCaFile'], tls?.clientCaFile, read);
  return faultsOf({ cert, key, ca }, (pair) => tlsFaults({ pair, ca: ca.content }, Date.now()));
};

export const clientCertificateUnusable: Check = ({ environments }, { read }) =>
  environments.all.flatMap(({ name, tls }) => {
    const path = ['environments', name, 'tls'];
    const cert = opened([...path, 'certFile'], tls?.certFile, read);
    const key = opened([...path, 'keyFile'], tls?.keyFile, read);
    const ca = opened([...path, 'caFile'], tls?.caFile, read);
    return faultsOf({ cert, key, ca }, (pair) => tlsFaults({ pair, ca: ca.content }, Date.now()));
  });

export const sealUnusable: Check = ({ environments }, { read }) =>
  environments.all.flatMap(({ name, signing }) => {
    const path = ['environments', name, 'signing'];
    const cert = opened([...path, 'certFile'], signing?.certFile, read);
    const key = opened([...path, 'keyFile'], signing?.keyFile, read);
    return faultsOf({ cert, key }, (pair) =>
      pair && signing ? sealFaults(pair, signing.algorithm, Date.now()) : [],
    );
  });

/** A file that a setting names: its content, or why there is none. */
interface Opened {
  readonly path: Path;
  readonly content?: Buffer;
  readonly faults: readonly Contradiction[];
}

function opened(path: Path, file: string | null | undefined, read: Read | undefined): Opened {
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
  judge: (pair: KeyPair | undefined) => readonly PairFault[],
): readonly Contradiction[] {
  const { cert, key, ca } = files;
  const pair = cert.content && key.content ? { cert: cert.content, key: key.content } : undefined;
  const wrong = judge(pair).map(({ lies, message }) => {
    return { path: files[lies]?.path ?? cert.path, against: [], message: `this file ${message}` };
  });
  return [...[cert, key, ca].flatMap((file) => file?.faults ?? []), ...wrong];
}
