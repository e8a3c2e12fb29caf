/** From single settings to what they mean together: defaults that depend on others, overrides, parsed addresses. */

import type {
  ClientSettings,
  Config,
  EnvironmentSection,
  EnvironmentSettings,
  Settings,
  ShapingSettings,
} from './schema.ts';

/** Fills in what no single setting can know. Contradictions are not its business: it takes whatever is well-formed. */
export function resolveDefaults(settings: Settings): Config {
  const { active, ...named } = settings.environments;
  const all = Object.entries(named).map(([name, environment]) =>
    environmentOf(name, environment, settings.shaping),
  );
  const names = all.map((environment) => environment.name);

  return {
    ...settings,
    listen: { ...settings.listen, publicUrl: settings.listen.publicUrl ?? ownAddress(settings.listen) },
    clients: settings.clients.map((client) => clientOf(client, names)),
    environments: { active: active ?? onlyOne(names) ?? noActiveEnvironment, all },
  };
}

/** Stands for an active environment that was not named, though there are several: no environment is called so. */
export const noActiveEnvironment = '';

const onlyOne = (names: readonly string[]) => (names.length === 1 ? names[0] : undefined);

/** Hosts that stand for every address of the machine: one can listen on them, but nobody can call them. */
export const wildcardHosts: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

function ownAddress({ host, port, tls }: Settings['listen']): string {
  const reachable = wildcardHosts.has(host) ? '127.0.0.1' : host;
  return new URL(
    `${tls ? 'https' : 'http'}://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`,
  ).origin;
}

function environmentOf(
  name: string,
  written: EnvironmentSection,
  global: ShapingSettings,
): EnvironmentSettings {
  const { origin, pathname } = new URL(written.baseUrl);
  const basePath = pathname.replace(/\/$/, '');
  return { ...written, name, origin, basePath, shaping: overrideShaping(global, written.shaping ?? {}) };
}

const overrideShaping = (
  global: ShapingSettings,
  own: NonNullable<EnvironmentSection['shaping']>,
): ShapingSettings => ({
  ...global,
  rate: own.rate ?? global.rate,
  burst: own.burst ?? global.burst,
  maxConcurrent: own.maxConcurrent ?? global.maxConcurrent,
  queue: own.queue ?? global.queue,
  maxWait: {
    write: own.maxWait?.write ?? global.maxWait.write,
    read: own.maxWait?.read ?? global.maxWait.read,
    status: own.maxWait?.status ?? global.maxWait.status,
  },
});

const clientOf = (client: Settings['clients'][number], names: readonly string[]): ClientSettings => ({
  ...client,
  tenant: client.tenant ?? client.name,
  environments: client.environments ?? names,
});
