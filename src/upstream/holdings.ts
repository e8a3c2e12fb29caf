/** What the gateway holds for one side of the bank: credentials and a seal, renewed with their files, and the connections. */

import type { CertificateUse, HeldCertificate } from '../certificates/held.ts';
import { type Watched, watchFiles } from '../certificates/watched-files.ts';
import type { EnvironmentSettings, UpstreamSettings } from '../config/schema.ts';
import type { CertificateNews } from '../telemetry/certificate-news.ts';
import { createAgent, type Pool } from './agent.ts';
import { credentialFiles, credentialsFrom, type Shown } from './credentials.ts';
import { type Seal, sealFrom } from './signing.ts';

export interface Holdings {
  /** The connections that are made with the credentials in use. */
  pool(): Pool;
  /** A pool of its own, with the same credentials. */
  newPool(): Pool;
  /** `undefined` if requests are not signed here. */
  readonly sealNow: (() => Seal) | undefined;
  certificates(): readonly HeldCertificate[];
  /** Takes over what has changed on the disk. Never rejects. */
  look(): Promise<void>;
}

/** @throws Error that names the file, if one cannot be read or used */
export function createHoldings(
  environment: EnvironmentSettings,
  settings: UpstreamSettings,
  news: CertificateNews,
): Holdings {
  const { name, tls, signing } = environment;
  const newPool = () => createAgent(environment, settings, shown.current().credentials);
  const shown: Watched<Shown> = watchFiles(credentialFiles(tls), (read) => credentialsFrom(tls, read), {
    kept: (why) => news.kept(name, 'qwac', why),
    renewed({ facts }) {
      pool.drain(); // whoever begins from now on takes the new one: a bank may refuse the old certificate from now on
      pool = newPool();
      news.renewed(name, 'qwac', facts);
    },
  });
  let pool = newPool();
  const seal = signing && watchSeal(name, signing, news);

  const held = (use: CertificateUse, facts: HeldCertificate['facts'] | undefined) =>
    facts ? [{ environment: name, use, facts }] : [];

  return {
    pool: () => pool,
    newPool,
    sealNow: seal?.current,
    certificates: () => [...held('qwac', shown.current().facts), ...held('qseal', seal?.current().facts)],
    async look() {
      await Promise.all([shown.look(), seal?.look()]);
    },
  };
}

function watchSeal(
  environment: string,
  signing: NonNullable<EnvironmentSettings['signing']>,
  news: CertificateNews,
): Watched<Seal> {
  return watchFiles([signing.certFile, signing.keyFile], (read) => sealFrom(signing, read), {
    kept: (why) => news.kept(environment, 'qseal', why),
    renewed: ({ facts }) => news.renewed(environment, 'qseal', facts),
  });
}
