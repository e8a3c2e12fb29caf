/** Lines of CSV (RFC 4180) that a spreadsheet shows as text: no value can become a formula. */

/** @returns the header and one line per row, without line ends */
export const csvLines = <Column extends string>(
  columns: readonly Column[],
  rows: readonly Readonly<Record<Column, string | null>>[],
): readonly string[] => [columns, ...rows.map((row) => columns.map((name) => row[name] ?? ''))].map(lineOf);

const lineOf = (values: readonly string[]) => values.map(fieldOf).join(',');

const fieldOf = (value: string) => `"${withoutFormula(value).replaceAll('"', '""')}"`;

/**
 * Spreadsheets calculate a value that begins with one of these, also in quotes; some skip blanks before it. An apostrophe in
 * front makes it text (OWASP, CSV injection). The last four are the full-width forms.
 */
const withoutFormula = (value: string) => (/^\s*[=+\-@\t\r\n＝＋－＠]/u.test(value) ? `'${value}` : value);
