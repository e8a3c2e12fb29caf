/** The part of a configuration that decides the identities of tenants and environments. */

import { hash } from 'node:crypto';
import type { Config } from '../config/schema.ts';
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
  /** Origin and base path. */
  readonly bank: string;
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
    environments: environments.all.map(({ name, origin, basePath, movedFrom }) => {
      return { name, bank: origin + basePath, movedFrom };
    }),
  };
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
