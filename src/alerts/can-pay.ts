/** Whether customers can pay now, in a word: for the console and `penstock status`. */

import { alertRow, isAlertId, type Severity } from './alert-table.ts';

/** `no`: most payments fail. `some`: some may fail, or wait. */
export type CanPay = 'yes' | 'some' | 'no';

interface AlertOfEnvironment {
  readonly id: string;
  readonly severity: Severity;
  readonly environment?: string | undefined;
  readonly overSince?: string | undefined;
  readonly instances?: readonly string[] | undefined;
}

/**
 * What is over counts as a warning until its alert goes, so that the answer does not flap with a bank that does. What concerns only some of
 * the instances stops only some payments; so may what a newer gateway calls critical.
 *
 * @param active the active environment; payments of others are not those of customers
 */
export function canPay(alerts: readonly AlertOfEnvironment[], active: string | null): CanPay {
  const effects = alerts.filter(({ environment = active }) => environment === active).map(effectOf);
  return effects.includes('no') ? 'no' : effects.includes('some') ? 'some' : 'yes';
}

function effectOf(alert: AlertOfEnvironment): CanPay {
  const { id, instances } = alert;
  const stopsPayments = isAlertId(id) ? alertRow(id).stopsPayments : 'unknown';
  if (alert.severity === 'info' || stopsPayments === undefined) return 'yes';
  if (alert.severity === 'warning') return stopsPayments === 'always' ? 'some' : 'yes';
  const isEverywhere = instances === undefined && stopsPayments !== 'unknown';
  return isEverywhere && currentSeverity(alert) === 'critical' ? 'no' : 'some';
}

/** A critical alert that is over, and only kept for a moment, is a warning. */
export const currentSeverity = ({
  severity,
  overSince,
}: Pick<AlertOfEnvironment, 'severity' | 'overSince'>): Severity =>
  severity === 'critical' && overSince !== undefined ? 'warning' : severity;
