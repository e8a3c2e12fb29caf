/** docs/architecture/ledger.md: the steps of a write, from the table of transitions. */

import { repairs, transitions } from '../../src/store/ledger-steps.ts';
import { generatedFrom, page, table } from './markdown.ts';

export const ledgerPage = (): string =>
  page([
    '# The steps of a write',
    generatedFrom('src/store/ledger-steps.ts'),
    'Each write of a TPP is one row of the table `ledger` ([ADR 120](adr/0120-ledger-in-sql.md)). Its column `step` says how far it got. ' +
      'A row is changed only from a step that is listed here, or below as a repair.',
    ['```mermaid', 'stateDiagram-v2', ...new Set(transitions.map(arrow)), '```'].join('\n'),
    table(
      ['from', 'to', 'when'],
      transitions.map(({ from, to, when }) => [from, to, when]),
    ),
    '## Repairs',
    'If an answer of the bank arrives, and the database has lost what was confirmed, the row is that of the attempt that was sent again:',
    table(
      ['from', 'to', 'when'],
      repairs.map(({ from, to, when }) => [from, to, when]),
    ),
  ]);

const arrow = ({ from, to }: (typeof transitions)[number]) => `  ${node(from)} --> ${node(to)}`;

/** Mermaid draws the beginning and the end as `[*]`, and names no state with a hyphen. */
const node = (step: string) => (step === 'none' ? '[*]' : step.replace('-', '_'));
