/** TLS of `penstock bank`: a key and a certificate that are made at the start, and the CA of the client certificates that it demands. */

import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BankOptions } from '../simulated-bank/bank.ts';
import { selfSignedCertificate } from '../simulated-bank/self-signed-certificate.ts';
import type { Options } from './command.ts';
import { UsageError } from './command-error.ts';

interface BankTls {
  readonly options: NonNullable<BankOptions['tls']>;
  /** The certificate of the bank, for its clients. The file is removed when the process exits. */
  readonly certFile: string;
}

const dayMs = 86_400_000;

/**
 * @param host where the bank listens; the certificate also names the host of `--public-origin`, and this machine
 * @returns `undefined` without `--tls`
 * @throws UsageError if the CA certificate of `--client-ca` cannot be used
 */
export function createBankTls({ tls, clientCa, publicOrigin }: Options, host: string): BankTls | undefined {
  if (clientCa !== undefined && !tls)
    throw new UsageError('--client-ca requires --tls: a bank without TLS gets no client certificates');
  if (!tls) return undefined;
  const ca = clientCa === undefined ? undefined : readAuthority(clientCa);

  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const publicHost = publicOrigin === undefined ? [] : [hostOf(publicOrigin)];
  const cert = selfSignedCertificate(pair, {
    hosts: [...new Set(['localhost', '127.0.0.1', '::1', host, ...publicHost])],
    from: new Date(Date.now() - dayMs), // clocks differ
    until: new Date(Date.now() + 365 * dayMs),
  });
  const key = pair.privateKey.export({ type: 'pkcs8', format: 'pem' });
  return {
    options: { key, cert, ...(ca !== undefined && { ca, requestCert: true, rejectUnauthorized: true }) },
    certFile: writeUntilExit(cert),
  };
}

/** PEM; it may contain several certificates. */
function readAuthority(file: string): string {
  try {
    const pem = readFileSync(file, 'utf8');
    new X509Certificate(pem);
    return pem;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(
      `--client-ca: no certificate in PEM format can be read from ${file} (${why}); name the file with the CA certificate that has issued the client certificates`,
    );
  }
}

/** Without the brackets of an IPv6 address. */
const hostOf = (origin: string) => new URL(origin).hostname.replace(/^\[(.*)\]$/, '$1');

function writeUntilExit(cert: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-bank-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'bank.crt');
  writeFileSync(file, cert);
  return file;
}
