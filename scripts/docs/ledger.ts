/** docs/architecture/ledger.md: the steps of a write, from the table of transitions. */

import { transitions } from '../../src/store/ledger-steps.ts';
import { generatedFrom, page, table } from './markdown.ts';

export const ledgerPage = (): string =>
  page([
    '# The steps of a write',
    generatedFrom('src/store/ledger-steps.ts'),
    'Each write of a TPP is one row of the table `ledger` ([ADR 120](adr/0120-ledger-in-sql.md)). Its column `step` says how far it got. ' +
      'The statements of the ledger are made from this table: a row is changed only from a step that is listed here.',
    ['```mermaid', 'stateDiagram-v2', ...new Set(transitions.map(arrow)), '```'].join('\n'),
    table(
      ['from', 'to', 'when'],
      transitions.map(({ from, to, when }) => [from, to, when]),
    ),
  ]);

const arrow = ({ from, to }: (typeof transitions)[number]) => `  ${node(from)} --> ${node(to)}`;

/** Mermaid draws the beginning and the end as `[*]`, and names no state with a hyphen. */
const node = (step: string) => (step === 'none' ? '[*]' : step.replace('-', '_'));
