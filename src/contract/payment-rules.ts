/**
 * Rules for payments in JSON that a schema cannot state: check digits, currencies, amounts, dates. The schema reports values of a
 * wrong type.
 */

import { fractionDigitsOf, isWithdrawn } from './currencies.ts';
import { isDate } from './dates.ts';
import type { DeviationList } from './deviation.ts';
import { isPublishedExample, isValidIban, looksLikeIban } from './iban.ts';

/** A field of an object from `JSON.parse`; `undefined` for all other values. @param name of the standard, so that no prototype has it */
export const fieldOf = (value: unknown, name: string): unknown => (isRecord(value) ? value[name] : undefined);

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/** Rules of a transfer that are the same in all versions. */
export function checkTransfer(transfer: unknown, root: string, list: DeviationList): void {
  const amount = fieldOf(transfer, 'instructedAmount');
  const currency = fieldOf(amount, 'currency');
  checkCurrency(currency, root, 'instructedAmount/currency', list);
  const value = fieldOf(amount, 'amount');
  if (typeof value === 'string') checkAmountValue(value, currency, root, 'instructedAmount/amount', list);
  checkAccount(fieldOf(transfer, 'creditorAccount'), root, 'creditorAccount', list);
}

/** Check digits and currency of an account. */
export function checkAccount(account: unknown, root: string, name: string, list: DeviationList): void {
  const iban = fieldOf(account, 'iban');
  if (typeof iban === 'string') checkIban(iban, root, `${name}/iban`, list);
  const currency = fieldOf(account, 'currency');
  if (currency !== undefined) checkCurrency(currency, root, `${name}/currency`, list);
}

/** @param text the schema reports a text that does not look like an IBAN */
export function checkIban(text: string, root: string, name: string, list: DeviationList): void {
  if (isValidIban(text) || !looksLikeIban(text)) return;
  if (isPublishedExample(text)) list.add('usual', 'iban', `${root}/${name}`, 'may-be-refused');
  else list.add('harmful', 'iban', `${root}/${name}`, 'refused');
}

/** @param value a decimal number; the schema reports other texts */
export function checkAmountValue(
  value: string,
  currency: unknown,
  root: string,
  name: string,
  list: DeviationList,
): void {
  if (!/^-?\d{1,20}(?:\.\d{1,20})?$/.test(value)) return;
  if (Number(value) <= 0) list.add('harmful', 'amount-positive', `${root}/${name}`, 'refused');
  const dot = value.indexOf('.');
  const digits = typeof currency === 'string' ? fractionDigitsOf(currency) : undefined;
  if (digits !== undefined && dot >= 0 && value.length - dot - 1 > digits) {
    list.add('harmful', 'amount-digits', `${root}/${name}`, 'refused');
  }
  if (value.length > 14 && value.replace(/[-.]/g, '').replace(/^0+/, '').length > 14) {
    list.add('notable', 'significant-digits', `${root}/${name}`, 'may-be-refused');
  }
}

export function checkCurrency(currency: unknown, root: string, name: string, list: DeviationList): void {
  if (typeof currency !== 'string' || fractionDigitsOf(currency) !== undefined) return;
  if (!/^[A-Z]{3}$/.test(currency)) return; // the schema reports it
  if (isWithdrawn(currency)) list.add('notable', 'currency-withdrawn', `${root}/${name}`, 'may-be-refused');
  else list.add('harmful', 'currency', `${root}/${name}`, 'refused');
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
