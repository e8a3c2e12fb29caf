/** The names of the statements of the ledger, for tests that fail or pause one of them. */

import * as ledger from '../../src/store/ledger-statements.ts';

export type StatementName = {
  [Name in keyof typeof ledger]: (typeof ledger)[Name] extends { readonly columns: unknown } ? Name : never;
}[keyof typeof ledger];

const names = new Map<unknown, string>(Object.entries(ledger).map(([name, value]) => [value, name]));

/** `claim`, `mark`, `recordAnswer`; an empty text for a statement of another module. */
export const nameOfStatement = (statement: unknown): string => names.get(statement) ?? '';
