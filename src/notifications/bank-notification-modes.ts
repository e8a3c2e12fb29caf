/** What each environment does about the notifications of its bank, by one configuration. */

import type { Config } from '../config/schema.ts';
import type { Identities } from '../request/identities.ts';
import type { BankNotificationMode } from './request-bank-notifications.ts';

type RelevantConfig = Pick<Config, 'environments' | 'notifications'>;

/**
 * The setting of an environment. `receive` without `notifications.listen` and `publicUrl` counts as `off`: a reload can change the
 * setting, but only a restart opens the listener.
 */
export function bankNotificationModeIn(
  config: RelevantConfig,
): (environment: string) => BankNotificationMode {
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
  const modeOf = bankNotificationModeIn(config);
  return config.environments.all.map(({ name }) => name).filter((name) => modeOf(name) === 'receive');
}

/** The ids that tokens of these environments contain. */
export const receivingEnvironmentIds = (
  config: RelevantConfig,
  { environmentIdOf }: Identities,
): readonly string[] => receivingEnvironments(config).map(environmentIdOf);
