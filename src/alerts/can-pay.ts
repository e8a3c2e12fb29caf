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
 * What is over does not count, and what concerns only some of the instances stops only some payments.
 *
 * @param active the active environment; payments of others are not those of customers
 */
export function canPay(alerts: readonly AlertOfEnvironment[], active: string | null): CanPay {
  const relevant = alerts.filter(
    ({ environment = active, overSince }) => environment === active && overSince === undefined,
  );
  const stopping = relevant.filter(
    ({ id, severity }) => severity === 'critical' && effectOf(id) !== undefined,
  );
  if (stopping.some(({ instances }) => instances === undefined)) return 'no';
  const hampering = relevant.filter(
    ({ id, severity }) => severity === 'warning' && effectOf(id) === 'always',
  );
  return stopping.length > 0 || hampering.length > 0 ? 'some' : 'yes';
}

const effectOf = (id: string) => (isAlertId(id) ? alertRow(id).stopsPayments : undefined);
