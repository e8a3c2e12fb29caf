/** The requests in doubt as a file: for the bank, or for a spreadsheet. */

import { csvLines } from './csv.ts';

/** One request, as the admin API lists it. */
export interface ListedInDoubt {
  readonly id: string;
  readonly xRequestId: string;
  readonly operation: string;
  readonly paymentId: string | null;
  readonly environment: string;
  readonly tenant: string;
  readonly since: string;
  readonly lateAnswerUntil: string;
  readonly bankAnswered: boolean;
  readonly severity: 'critical' | 'warning';
  readonly why: string;
}

const columns = [
  'since',
  'xRequestId',
  'operation',
  'paymentId',
  'environment',
  'tenant',
  'why',
  'lateAnswerUntil',
  'id',
  'severity',
] as const satisfies readonly (keyof ListedInDoubt)[];

/** Header and one line per request, without line ends. */
export const inDoubtCsv = (requests: readonly ListedInDoubt[]): readonly string[] =>
  csvLines(columns, requests);

/** The content of a file. */
export const exportText = (format: 'csv' | 'json', requests: readonly ListedInDoubt[]): string =>
  format === 'csv'
    ? inDoubtCsv(requests)
        .map((line) => `${line}\r\n`)
        .join('')
    : `${JSON.stringify(requests, null, 2)}\n`;

/** The name of a file: `penstock-in-doubt-20261123T144501Z.csv`. */
export const exportFileName = (format: 'csv' | 'json', atMs: number): string =>
  `penstock-in-doubt-${new Date(atMs).toISOString().replaceAll(/[-:]|\.\d+/g, '')}.${format}`;
