/** Completes the parsed settings: defaults that depend on other settings, overrides per environment, parsed URLs. */

import { joinPath, type Lane, type OperationName, operations } from '../pis/operations.ts';
import type { EnvironmentVariables } from './environment-variables.ts';
import { fixedValueVariables } from './fixed-values.ts';
import type {
  ClientSettings,
  Config,
  DeadlineSettings,
  EnvironmentSection,
  EnvironmentSettings,
  ListenSettings,
  Settings,
  ShapingSettings,
} from './schema.ts';
import { isLoopback } from './values.ts';

/** Variables whose presence the gateway reports. */
const proxyVariables = ['HTTPS_PROXY', 'https_proxy'];

/** Accepts any settings that the schema accepts. The cross-checks find contradictions. */
export function resolveDefaults(settings: Settings, variables: EnvironmentVariables = {}): Config {
  const { active, ...sections } = settings.environments;
  const all = Object.entries(sections).map(([name, section]) => resolveEnvironment(name, section, settings));
  const names = all.map((environment) => environment.name);
  const onlyName = names.length === 1 ? names[0] : undefined;

  return {
    ...settings,
    listen: resolveListen(settings),
    admin: { ...settings.admin, publicUrl: settings.admin.publicUrl ?? listenUrl(settings.admin) },
    clients: settings.clients.map((client) => resolveClient(client, names)),
    environments: {
      active: active ?? onlyName ?? noActiveEnvironment,
      all,
      variables: Object.fromEntries(
        [...all.flatMap(fixedValueVariables), ...proxyVariables].map((name) => [name, variables[name]]),
      ),
    },
  };
}

function resolveListen({ listen, admin }: Settings): ListenSettings {
  const publicUrl = listen.publicUrl ?? listenUrl(listen);
  const errorPageUrl =
    listen.errorPageUrl === undefined ? localErrorPage(publicUrl, admin) : listen.errorPageUrl;
  return { ...listen, publicUrl, errorPageUrl };
}

/** The admin listener's copy of the error reference, if TPP systems are on this machine and can therefore reach it. */
export function localErrorPage(publicUrl: string, admin: Settings['admin']): string | null {
  const isLocal = isLoopback(new URL(publicUrl).hostname) && isLoopback(admin.host) && admin.port !== 0;
  return isLocal ? `${listenUrl(admin)}/errors.html` : null;
}

/** The longest deadline of each lane: no environment allows a request more time. Milliseconds. */
export function longestDeadlines({ environments: { all } }: Config): Readonly<Record<Lane, number>> {
  const longest = (lane: Lane) => Math.max(...all.map(({ deadlines }) => deadlines[lane]));
  return { write: longest('write'), read: longest('read'), status: longest('status') };
}

/** Whether operators can sign in under names of their own. */
export const hasNamedOperators = ({ operators, trustedProxies, oidc }: Settings['admin']): boolean =>
  operators.length > 0 || trustedProxies.length > 0 || oidc !== undefined;

/** Placeholder if the settings name no active environment and there is not exactly one; not a valid name. */
export const noActiveEnvironment = '';

/** Wildcard hosts, for all addresses of the machine: valid to listen on, but not as a destination of clients. */
const wildcardHosts: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/** Whether both listeners would open the same port of the same host. Port 0 is a different one each time. */
export function shareAddress(one: ListenerAddress, other: ListenerAddress): boolean {
  const sameHost = one.host === other.host || wildcardHosts.has(one.host) || wildcardHosts.has(other.host);
  return one.port === other.port && one.port !== 0 && sameHost;
}

/** The listeners, with the path of their settings. */
export const configuredListeners = ({
  listen,
  admin,
  notifications,
}: Pick<Config, 'listen' | 'admin' | 'notifications'>) => [
  { path: ['listen'], use: 'listener', tls: listen.tls } as const,
  { path: ['admin'], use: 'admin-listener', tls: admin.tls } as const,
  {
    path: ['notifications', 'listen'],
    use: 'notification-listener',
    tls: notifications.listen?.tls,
  } as const,
];

interface ListenerAddress {
  readonly host: string;
  readonly port: number;
  readonly tls?: object | undefined;
}

/** The URL of a listener on this machine: the default of its `publicUrl`. */
export function listenUrl({ host, port, tls }: ListenerAddress): string {
  const reachable = wildcardHosts.has(host) ? '127.0.0.1' : host;
  const bracketed = reachable.includes(':') ? `[${reachable}]` : reachable;
  return new URL(`${tls ? 'https' : 'http'}://${bracketed}:${port}`).origin;
}

function resolveEnvironment(
  name: string,
  section: EnvironmentSection,
  global: Settings,
): EnvironmentSettings {
  const { origin, pathname } = new URL(section.baseUrl);
  const basePath = pathname.replace(/\/$/, '');
  const shaping = overrideShaping(global.shaping, section.shaping ?? {});
  const deadlines = overrideDeadlines(global.deadlines, section.deadlines ?? {});
  const segment = section.segment ?? global.standard.segment;
  const prefixes = prefixesOf((operation) => joinPath(basePath, segment, versionOf(section, operation)));
  return { ...section, name, origin, basePath, segment, prefixes, shaping, deadlines };
}

/** The version in the path of an operation. */
export const versionOf = (
  { pathVersion }: Pick<EnvironmentSection, 'pathVersion'>,
  operation: OperationName,
): string =>
  typeof pathVersion === 'string' ? pathVersion : (pathVersion[operation] ?? pathVersion.default);

/** The paths at the bank before `/{payment-service}`, of all operations. */
export function prefixesOf(
  prefixOf: (operation: OperationName) => string,
): Readonly<Record<OperationName, string>> {
  const prefixes = operations.map(({ name }) => [name, prefixOf(name)] as const);
  return Object.fromEntries(prefixes) as Record<OperationName, string>; // `fromEntries` forgets the names
}

const overrideShaping = (
  global: ShapingSettings,
  own: NonNullable<EnvironmentSection['shaping']>,
): ShapingSettings => ({
  ...global,
  rate: own.rate ?? global.rate,
  burst: own.burst ?? global.burst,
  maxConcurrent: own.maxConcurrent ?? global.maxConcurrent,
  reserve: own.reserve ?? global.reserve,
  queue: own.queue ?? global.queue,
  maxWait: {
    write: own.maxWait?.write ?? global.maxWait.write,
    read: own.maxWait?.read ?? global.maxWait.read,
    status: own.maxWait?.status ?? global.maxWait.status,
  },
});

const overrideDeadlines = (
  global: DeadlineSettings,
  own: NonNullable<EnvironmentSection['deadlines']>,
): DeadlineSettings => ({
  connect: own.connect ?? global.connect,
  status: own.status ?? global.status,
  read: own.read ?? global.read,
  write: own.write ?? global.write,
});

const resolveClient = (client: Settings['clients'][number], names: readonly string[]): ClientSettings => ({
  ...client,
  tenant: client.tenant ?? client.name,
  environments: client.environments ?? names,
  onlyEnvironment: client.environments?.length === 1 ? client.environments[0] : undefined,
});
