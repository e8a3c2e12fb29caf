/** Cross-checks of the notifications of banks, and of the listener for them. */

import type { ConfigError } from './config-errors.ts';
import type { CrossCheck } from './cross-checks.ts';
import { shareAddress } from './resolve-defaults.ts';
import type { Config } from './schema.ts';

export const notificationCrossChecks: readonly CrossCheck[] = [
  notificationsWithoutListener,
  sharedNotificationAddress,
];

function notificationsWithoutListener({ environments, notifications }: Config): readonly ConfigError[] {
  const missing = (['listen', 'publicUrl'] as const).filter((name) => notifications[name] === undefined);
  if (missing.length === 0) return [];
  const names = missing.map((name) => `notifications.${name}`).join(' and ');
  return environments.all
    .filter(({ bankNotifications }) => bankNotifications === 'receive')
    .map(({ name }) => ({
      path: ['environments', name, 'bankNotifications'],
      related: missing.map((setting) => ['notifications', setting]),
      message: `receive requires ${names}, where the bank sends its notifications to; set ${missing.length > 1 ? 'them' : 'it'}, or use forward`,
    }));
}

function sharedNotificationAddress({ listen, admin, notifications }: Config): readonly ConfigError[] {
  const own = notifications.listen;
  if (!own) return [];
  const others = [
    { section: 'listen', what: 'the public API', address: listen },
    { section: 'admin', what: 'the admin listener', address: admin },
  ];
  return others
    .filter(({ address }) => shareAddress(address, own))
    .map(({ section, what }) => ({
      path: ['notifications', 'listen', 'port'],
      related: [
        [section, 'port'],
        ['notifications', 'listen'],
      ],
      message: `the listener for notifications has the same address and port as ${what} (${section}.port); set another port`,
    }));
}
