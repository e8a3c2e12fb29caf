/** The part of a configuration that decides the identities of tenants and environments. */

import { hash } from 'node:crypto';
import type { Config, EnvironmentSettings } from '../config/schema.ts';
import { anonymousTenant } from './identities-record.ts';

export interface TenantIdentitySettings {
  readonly name: string;
  readonly formerly: readonly string[];
  /** Of its clients; none for the tenant `anonymous` of a gateway without clients. */
  readonly credentials: readonly CredentialSettings[];
}

export interface CredentialSettings {
  /** Identifies the key or certificate, and does not reveal the configured hash. */
  readonly id: string;
  readonly kind: 'API key' | 'certificate';
  /** The name of the client that uses it. */
  readonly client: string;
}

export interface EnvironmentIdentitySettings {
  readonly name: string;
  /** Origin and base path, and what distinguishes the environment at a hub: `https://hub.example/psd2#` and a hash. */
  readonly bank: string;
  /** Whether another environment has the same origin and base path. */
  readonly isShared: boolean;
  readonly movedFrom: readonly string[];
}

export interface IdentitySettings {
  readonly tenants: readonly TenantIdentitySettings[];
  readonly retired: readonly string[];
  readonly environments: readonly EnvironmentIdentitySettings[];
}

export function identitySettingsOf({ clients, tenants, environments }: Config): IdentitySettings {
  const names = clients.length === 0 ? [anonymousTenant] : [...new Set(clients.map(({ tenant }) => tenant))];
  return {
    tenants: names.map((name) => ({
      name,
      formerly: tenants.all.find((tenant) => tenant.name === name)?.formerly ?? [],
      credentials: clients.filter(({ tenant }) => tenant === name).flatMap(credentialsOf),
    })),
    retired: tenants.retired,
    environments: environments.all.map((environment) => {
      const { name, origin, basePath, movedFrom } = environment;
      const isShared = environments.all.some(
        (other) => other !== environment && other.origin === origin && other.basePath === basePath,
      );
      return { name, bank: `${origin}${basePath}#${distinctionOf(environment)}`, isShared, movedFrom };
    }),
  };
}

/** The address of a recorded bank, without what distinguishes it. */
export const addressOfBank = (bank: string): string => bank.split('#', 1)[0] ?? bank;

/**
 * A hash of what may name a bank at a hub: every text, whatever its name. Not of versions, and not of values from files and
 * variables, which may change while the bank stays the same. A hash, because texts of headers and queries are not stored.
 */
function distinctionOf({ segment, headers, query }: EnvironmentSettings): string {
  const texts = [headers, query].map((values) =>
    Object.entries(values)
      .filter(([, value]) => typeof value === 'string')
      .map(([name, value]) => JSON.stringify([name.toLowerCase(), value]))
      .sort(),
  );
  return hash('sha256', JSON.stringify([segment, ...texts]), 'base64url').slice(0, 16);
}

function credentialsOf({
  name,
  apiKeySha256,
  certificateSha256,
}: Config['clients'][number]): readonly CredentialSettings[] {
  const credential = (kind: CredentialSettings['kind'], digest: string | undefined) =>
    digest === undefined ? [] : [{ id: idOf(kind, digest), kind, client: name }];
  return [...credential('API key', apiKeySha256), ...credential('certificate', certificateSha256)];
}

const idOf = (kind: string, digest: string) => hash('sha256', `${kind}\0${digest}`, 'base64url').slice(0, 22);
