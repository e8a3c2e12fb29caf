/** What a TPP is notified of: `TPP-Notification-Content-Preferred` and `ASPSP-Notification-Content` (1.3.11). */

/**
 * `SCA`: each change of the status of an authorisation. `PROCESS`: each change of the status of the payment, the last one included.
 * `LAST`: its last status only.
 */
export const notificationContents = ['PROCESS', 'LAST', 'SCA', 'SCA,PROCESS', 'SCA,LAST'] as const;

export type NotificationContent = (typeof notificationContents)[number];

/**
 * Parses `status=SCA,PROCESS,LAST`.
 *
 * @param values all values of the field, in order
 * @returns `PROCESS` for a field that is missing, repeated or malformed, because the TPP only states a preference
 */
export function parseContentPreferred(values: readonly string[]): NotificationContent {
  const [value = '', ...others] = values;
  const list = others.length === 0 ? /^\s*status\s*=(.*)$/i.exec(value)?.[1] : undefined;
  const names = new Set(list?.split(',').map((name) => name.trim().toUpperCase()));
  const isLast = names.has('LAST') && !names.has('PROCESS');
  if (!names.has('SCA')) return isLast ? 'LAST' : 'PROCESS';
  if (names.has('PROCESS')) return 'SCA,PROCESS';
  return isLast ? 'SCA,LAST' : 'SCA';
}

/** The value of `ASPSP-Notification-Content`. */
export const serializeContent = (content: NotificationContent): string => `status=${content}`;

export const includesSca = (content: NotificationContent): boolean => content.startsWith('SCA');

/** Which statuses of the payment are sent; `undefined`: none. */
export function paymentContentOf(content: NotificationContent): 'PROCESS' | 'LAST' | undefined {
  switch (content) {
    case 'PROCESS':
    case 'SCA,PROCESS':
      return 'PROCESS';
    case 'LAST':
    case 'SCA,LAST':
      return 'LAST';
    case 'SCA':
      return undefined;
  }
}
