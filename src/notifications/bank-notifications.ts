/** Which environments send notifications to the gateway, by the configuration in effect. */

import type { Config } from '../config/schema.ts';
import type { Identities } from '../request/identities.ts';
import type { BankNotifications } from './request-pushes.ts';

type RelevantConfig = Pick<Config, 'environments' | 'notifications'>;

/**
 * The setting of an environment. `receive` without a listener is `off`: a reload may have changed the setting, but only a restart
 * opens the listener.
 */
export function bankNotificationsIn(config: RelevantConfig): (environment: string) => BankNotifications {
  const { listen, publicUrl } = config.notifications;
  const canReceive = listen !== undefined && publicUrl !== undefined;
  const modes = new Map(
    config.environments.all.map(({ name, bankNotifications: mode }) => {
      return [name, mode === 'receive' && !canReceive ? 'off' : mode] as const;
    }),
  );
  return (environment) => modes.get(environment) ?? 'off';
}

/** The names of the environments that notify the gateway. */
export function receivingEnvironments(config: RelevantConfig): readonly string[] {
  const modeOf = bankNotificationsIn(config);
  return config.environments.all.map(({ name }) => name).filter((name) => modeOf(name) === 'receive');
}

/** The identities that tokens of these environments contain: also those of environments that were merged into one of them. */
export function receivingEnvironmentIds(
  config: RelevantConfig,
  { environmentIds, environmentIdOf, environmentWith }: Identities,
): readonly string[] {
  const names = receivingEnvironments(config);
  const merged = environmentIds.filter((id) => names.includes(environmentWith(id) ?? ''));
  return [...new Set([...names.map(environmentIdOf), ...merged])];
}
