/**
 * Rules for payments in JSON that a schema cannot state: check digits, currencies, amounts, dates. The schema reports values of a
 * wrong type.
 */

import { fractionDigitsOf, isWithdrawn } from './currencies.ts';
import { isDate } from './dates.ts';
import type { DeviationList } from './deviation.ts';
import { isPublishedExample, isValidIban, looksLikeIban } from './iban.ts';

/** A field of an object; `undefined` for all other values. */
export const fieldOf = (value: unknown, name: string): unknown =>
  isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/** Rules of a transfer that are the same in all versions. */
export function checkTransfer(transfer: unknown, root: string, list: DeviationList): void {
  checkAmount(fieldOf(transfer, 'instructedAmount'), `${root}/instructedAmount`, list);
  checkAccount(fieldOf(transfer, 'creditorAccount'), `${root}/creditorAccount`, list);
}

/** Check digits and currency of an account. */
export function checkAccount(account: unknown, root: string, list: DeviationList): void {
  const iban = fieldOf(account, 'iban');
  if (typeof iban === 'string' && looksLikeIban(iban)) checkIban(iban, root, 'iban', list);
  const currency = fieldOf(account, 'currency');
  if (currency !== undefined) checkCurrency(currency, `${root}/currency`, list);
}

/** @param iban a text that looks like one */
export function checkIban(iban: string, root: string, name: 'iban' | 'IBAN', list: DeviationList): void {
  if (isValidIban(iban)) return;
  if (isPublishedExample(iban)) list.add('usual', 'iban', `${root}/${name}`, 'may-be-refused');
  else list.add('harmful', 'iban', `${root}/${name}`, 'refused');
}

function checkAmount(amount: unknown, root: string, list: DeviationList): void {
  const currency = fieldOf(amount, 'currency');
  checkCurrency(currency, `${root}/currency`, list);
  const value = fieldOf(amount, 'amount');
  if (typeof value === 'string') checkAmountValue(value, currency, `${root}/amount`, list);
}

/** @param value a decimal number; the schema reports other texts */
export function checkAmountValue(value: string, currency: unknown, path: string, list: DeviationList): void {
  const [, sign, whole = '', fraction = ''] = /^(-?)(\d{1,20})(?:\.(\d{1,20}))?$/.exec(value) ?? [];
  if (sign === undefined) return;
  if (sign === '-' || /^0*$/.test(whole + fraction)) list.add('harmful', 'amount-positive', path, 'refused');
  const digits = typeof currency === 'string' ? fractionDigitsOf(currency) : undefined;
  if (digits !== undefined && fraction.length > digits) list.add('harmful', 'amount-digits', path, 'refused');
  const significant = (whole + fraction).replace(/^0+/, '').length;
  if (significant > 14) list.add('notable', 'significant-digits', path, 'may-be-refused');
}

export function checkCurrency(currency: unknown, path: string, list: DeviationList): void {
  if (typeof currency !== 'string' || !/^[A-Z]{3}$/.test(currency)) return;
  if (fractionDigitsOf(currency) !== undefined) return;
  if (isWithdrawn(currency)) list.add('notable', 'currency-withdrawn', path, 'may-be-refused');
  else list.add('harmful', 'currency', path, 'refused');
}

/** A standing order must not end before it starts. */
export function checkEndDate(order: unknown, root: string, list: DeviationList): void {
  const start = fieldOf(order, 'startDate');
  const end = fieldOf(order, 'endDate');
  if (typeof start !== 'string' || typeof end !== 'string' || !isDate(start) || !isDate(end)) return;
  if (end < start) list.add('harmful', 'end-before-start', `${root}/endDate`, 'refused');
  else if (end === start) list.add('notable', 'end-before-start', `${root}/endDate`, 'may-be-refused');
}

/**
 * Months belong to `MonthlyVariable`, and it to them. In a version without months, `MonthlyVariable` stands alone.
 *
 * @param hasMonths whether the version has `monthsOfExecution`
 */
export function checkMonths(order: unknown, hasMonths: boolean, root: string, list: DeviationList): void {
  if (!hasMonths) return;
  const isVariable = fieldOf(order, 'frequency') === 'MonthlyVariable';
  if (isVariable === (fieldOf(order, 'monthsOfExecution') !== undefined)) return;
  list.add('harmful', 'months-and-frequency', `${root}/monthsOfExecution`, 'refused');
}

/**
 * @param today at the bank, as `YYYY-MM-DD`
 * @param isSure whether the zone of the bank is known
 */
export function checkNotPast(
  value: unknown,
  today: string,
  isSure: boolean,
  path: string,
  list: DeviationList,
): void {
  if (typeof value !== 'string' || !isDate(value) || value >= today) return;
  list.add(isSure ? 'harmful' : 'notable', 'date-in-past', path, isSure ? 'refused' : 'may-be-refused');
}
