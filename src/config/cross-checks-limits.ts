/** Cross-checks of durations, and of the numbers of calls and connections. They compare only what the user wrote. */

import type { ConfigError } from './config-errors.ts';
import type { CrossCheck, CrossCheckContext } from './cross-checks.ts';
import { valueAt } from './object-path.ts';
import type { Config } from './schema.ts';
import {
  globalSetting,
  isInOrder,
  ordersOfEnvironments,
  type SettingOrder,
  settingOrders,
} from './setting-orders.ts';

export const limitCrossChecks: readonly CrossCheck[] = [settingsOutOfOrder];

function settingsOutOfOrder(config: Config, { isWritten }: CrossCheckContext): readonly ConfigError[] {
  /** A setting that the environment does not override is the global one. */
  const written = (setting: string) => (isWritten(setting.split('.')) ? setting : globalSetting(setting));
  const ownOrders = ordersOfEnvironments(config.environments.all.map(({ name }) => name))
    .map((order) => ({ ...order, lesser: written(order.lesser), greater: written(order.greater) }))
    .filter(({ lesser, greater }) => globalSetting(lesser) !== lesser || globalSetting(greater) !== greater);
  const orders = [...settingOrders, ...ownOrders];

  /**
   * The orders between two written settings. If the greater setting is a default, it follows the lesser one
   * (derive-defaults.ts); the lesser one must then be in order with what is greater than this default.
   */
  const ordersOfWritten = (order: SettingOrder): readonly SettingOrder[] =>
    isWritten(order.greater.split('.'))
      ? [order]
      : orders
          .filter(({ lesser }) => lesser === order.greater)
          .flatMap((next) => ordersOfWritten(joinOrders(order, next)));

  return orders
    .filter(({ lesser }) => isWritten(lesser.split('.')))
    .flatMap(ordersOfWritten)
    .flatMap((order) => checkOrder(config, order));
}

const joinOrders = ({ lesser, must }: SettingOrder, next: SettingOrder): SettingOrder => ({
  ...next,
  lesser,
  must: must === 'be below' ? must : next.must,
});

function checkOrder(config: Config, order: SettingOrder): readonly ConfigError[] {
  const [lesser, greater] = [numberAt(config, order.lesser), numberAt(config, order.greater)];
  if (isInOrder(order, lesser, greater)) return [];
  return [
    {
      path: order.lesser.split('.'),
      related: [order.greater.split('.')],
      message:
        `${order.asWritten(lesser)} must ${order.must} ${order.greater} (${order.asWritten(greater)}), ${order.why}; ` +
        `lower it, or raise ${order.greater}`,
    },
  ];
}

function numberAt(config: Config, setting: string): number {
  const path = setting.split('.');
  const environment = config.environments.all.find(
    ({ name }) => path[0] === 'environments' && name === path[1],
  );
  return Number(environment ? valueAt(environment, path.slice(2)) : valueAt(config, path));
}
