/** What a TPP is notified of: `TPP-Notification-Content-Preferred` and `ASPSP-Notification-Content` (1.3.11). */

/** `PROCESS`: every change of the status. `LAST`: the last status only. The gateway does not send `SCA`. */
export type NotificationContent = 'PROCESS' | 'LAST';

/**
 * Parses `status=SCA,PROCESS,LAST`. `PROCESS` includes the last status.
 *
 * @param values all values of the field, in order
 * @returns what the gateway sends: `LAST` if it is preferred without `PROCESS`, or else `PROCESS`, also for a field that is missing,
 *   repeated or malformed, because the TPP only states a preference
 */
export function parseContentPreferred(values: readonly string[]): NotificationContent {
  const [value = '', ...others] = values;
  const list = others.length === 0 ? /^\s*status\s*=(.*)$/i.exec(value)?.[1] : undefined;
  const names = new Set(list?.split(',').map((name) => name.trim().toUpperCase()));
  return names.has('LAST') && !names.has('PROCESS') ? 'LAST' : 'PROCESS';
}

/** The value of `ASPSP-Notification-Content`. */
export const serializeContent = (content: NotificationContent): string => `status=${content}`;
