/** Test certificates, issued with the openssl command line: independent of the code under test. */

import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from './folder.ts';
import type { TestScope } from './test-scope.ts';

/** `cert` and `key` are the PEM contents of the files. */
export interface IssuedCertificate {
  readonly certFile: string;
  readonly keyFile: string;
  readonly cert: string;
  readonly key: string;
}

interface CertificateOptions {
  /** As for `-subj`: `/C=DE/O=Shop/CN=shop`. Default: only a CN. */
  readonly subject?: string;
  readonly key?: 'rsa' | 'ec';
  /** Validity as `YYYYMMDDHHMMSSZ`. Default: one year from yesterday. */
  readonly from?: string;
  readonly until?: string;
  /** Lines of an extension section of the openssl configuration, and further sections. */
  readonly extensions?: string;
}

export interface Authority extends IssuedCertificate {
  readonly folder: string;
  /** @param name names the files, and is the default CN */
  issue(name: string, options?: CertificateOptions): IssuedCertificate;
}

/** Creates an authority in a temporary folder, which is removed when the test ends. */
export function createAuthority(life: TestScope, name = 'authority'): Authority {
  const folder = temporaryFolder(life);
  const settings = join(folder, 'ca.cnf');
  writeFileSync(join(folder, 'index'), '');
  writeFileSync(settings, caSettings(folder, name));
  const { certFile, keyFile } = filesOf(folder, name);
  openssl('req', '-x509', '-config', settings, '-extensions', 'authority', '-nodes', '-days', '3650', ...ecKey,
    '-subj', `/C=DE/O=Trust Services, Ltd./CN=${name}`, '-keyout', keyFile, '-out', certFile); // biome-ignore format: one line for each group of options

  return {
    folder,
    ...issuedIn(folder, name),
    issue(
      certificateName,
      { subject = `/CN=${certificateName}`, key = 'ec', from, until, extensions = '' } = {},
    ) {
      const files = filesOf(folder, certificateName);
      const [request, extensionFile] = [
        join(folder, `${certificateName}.csr`),
        join(folder, `${certificateName}.cnf`),
      ];
      writeFileSync(
        extensionFile,
        `[requested]\nsubjectAltName = IP:127.0.0.1, DNS:localhost\n${extensions}\n`,
      );
      openssl('req', '-new', '-config', settings, '-nodes', ...(key === 'ec' ? ecKey : ['-newkey', 'rsa:2048']),
        '-utf8', '-subj', subject, '-keyout', files.keyFile, '-out', request); // biome-ignore format: one line for each group of options
      openssl('ca', '-batch', '-config', settings, '-in', request, '-out', files.certFile, '-notext', '-preserveDN',
        '-startdate', from ?? inDays(-1), '-enddate', until ?? inDays(365),
        '-extfile', extensionFile, '-extensions', 'requested'); // biome-ignore format: one line for each group of options
      return issuedIn(folder, certificateName);
    },
  };
}

/** The time the given number of days from now, in the format of openssl. */
export const inDays = (days: number): string =>
  new Date(Date.now() + days * 86_400_000).toISOString().replace(/[-:T]|\.\d+/g, '');

/** The QC statements of a TPP (ETSI TS 119 495 annex A), as lines of the openssl configuration. */
export const psd2Statements = (kind: 'web' | 'seal', ...roles: readonly (keyof typeof roleIds)[]): string => `
1.3.6.1.5.5.7.1.3 = ASN1:SEQUENCE:statements
[statements]
compliance.1 = SEQUENCE:compliance
type.1 = SEQUENCE:typed
psd2.1 = SEQUENCE:psd2
[compliance]
id = OID:0.4.0.1862.1.1
[typed]
id = OID:0.4.0.1862.1.6
info = SEQUENCE:types
[types]
one = OID:0.4.0.1862.1.6.${kind === 'web' ? 3 : 2}
[psd2]
id = OID:0.4.0.19495.2
info = SEQUENCE:authorised
[authorised]
roles = SEQUENCE:roles
name = FORMAT:UTF8,UTF8:Bundesanstalt für Finanzdienstleistungsaufsicht
id = UTF8:DE-BAFIN
[roles]
${roles.map((role) => `${role} = SEQUENCE:${role}`).join('\n')}
${roles.map((role) => `[${role}]\nid = OID:0.4.0.19495.1.${roleIds[role]}\nname = UTF8:${role}`).join('\n')}
`;

const roleIds = { PSP_AS: 1, PSP_PI: 2, PSP_AI: 3, PSP_IC: 4 } as const;

/** Replaces certificate and key atomically, one after the other. */
export function replaceCertificateFiles(
  inUse: Pick<IssuedCertificate, 'certFile' | 'keyFile'>,
  next: IssuedCertificate,
): void {
  for (const file of ['certFile', 'keyFile'] as const) {
    copyFileSync(next[file], `${inUse[file]}.next`);
    renameSync(`${inUse[file]}.next`, inUse[file]);
  }
}

/** Copies certificate and key to a folder, where they can be replaced. */
export function copyCertificateFiles(
  folder: string,
  name: string,
  { cert, key }: IssuedCertificate,
): IssuedCertificate {
  mkdirSync(folder, { recursive: true });
  const files = filesOf(folder, name);
  writeFileSync(files.certFile, cert);
  writeFileSync(files.keyFile, key);
  return { ...files, cert, key };
}

/** Runs openssl, 3.0 or later. @returns its output @throws Error with its error output, or if it is not installed */
export const openssl = (...args: readonly string[]): string =>
  execFileSync('openssl', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

const ecKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'] as const;

const filesOf = (folder: string, name: string) => ({
  certFile: join(folder, `${name}.crt`),
  keyFile: join(folder, `${name}.key`),
});

function issuedIn(folder: string, name: string): IssuedCertificate {
  const files = filesOf(folder, name);
  return { ...files, cert: readFileSync(files.certFile, 'utf8'), key: readFileSync(files.keyFile, 'utf8') };
}

const caSettings = (folder: string, name: string) => `
[ca]
default_ca = this
[this]
database = ${folder}/index
new_certs_dir = ${folder}
certificate = ${folder}/${name}.crt
private_key = ${folder}/${name}.key
rand_serial = yes
unique_subject = no
default_md = sha256
policy = anything
string_mask = utf8only
[anything]
commonName = optional
[req]
distinguished_name = none
string_mask = utf8only
[none]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
`;
