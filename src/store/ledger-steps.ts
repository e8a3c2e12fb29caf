/**
 * How far a write got, and how it may go on. The statements for outcomes take their steps from this table. Repairs after a loss in the
 * database are in a table of their own, because no other statement may take such a step.
 */

export type Step = 'claimed' | 'sending' | 'released' | 'answered' | 'happened' | 'in-doubt';

interface Transition {
  /** `none`: there is no row. */
  readonly from: Step | 'none';
  readonly to: Step | 'none';
  readonly when: string;
}

export const transitions: readonly Transition[] = [
  { from: 'none', to: 'claimed', when: 'a request uses this X-Request-ID for the first time' },
  {
    from: 'claimed',
    to: 'claimed',
    when: 'its instance has ended: nothing was sent, and a repeat takes over',
  },
  { from: 'claimed', to: 'none', when: 'nothing was sent' },
  { from: 'claimed', to: 'sending', when: 'the write-ahead mark: the bank may receive it from now on' },
  {
    from: 'sending',
    to: 'sending',
    when: 'the same attempt is sent on another connection, because nothing left on the first one',
  },
  { from: 'sending', to: 'released', when: 'the bank has not processed it' },
  { from: 'released', to: 'claimed', when: 'a repeat is a new attempt' },
  { from: 'claimed', to: 'released', when: 'nothing was sent, after an attempt that was released' },
  { from: 'sending', to: 'answered', when: 'the bank has answered' },
  { from: 'claimed', to: 'answered', when: 'the bank has answered, and the database has lost the mark' },
  { from: 'sending', to: 'in-doubt', when: 'no answer, or one that leaves open whether it was executed' },
  { from: 'claimed', to: 'in-doubt', when: 'the same, and the database has lost the mark' },
  { from: 'in-doubt', to: 'answered', when: 'the answer was late' },
  { from: 'in-doubt', to: 'in-doubt', when: 'the answer was late, and cannot be stored' },
  { from: 'in-doubt', to: 'released', when: 'the answer was late, and the bank has not processed it' },
  { from: 'in-doubt', to: 'happened', when: 'an operator or a read says so' },
  {
    from: 'happened',
    to: 'answered',
    when: 'the answer was late, and names the payment, which the operator did not',
  },
  { from: 'answered', to: 'happened', when: 'an operator says so after an answer such as 504' },
  {
    from: 'happened',
    to: 'happened',
    when: 'another attempt has reached the bank, too, and an operator has looked at both',
  },
  { from: 'in-doubt', to: 'none', when: 'an operator says that it did not happen' },
  { from: 'answered', to: 'none', when: 'the same after an answer such as 504, or its window has passed' },
  { from: 'released', to: 'none', when: 'its window has passed' },
  { from: 'happened', to: 'none', when: 'its window has passed' },
];

/** An answer has arrived, and the row is not as the attempt has left it. */
export const repairs: readonly Transition[] = [
  { from: 'none', to: 'sending', when: 'the database has lost the row' },
  {
    from: 'claimed',
    to: 'sending',
    when: 'the database has lost the mark, and another attempt has claimed the row and sent nothing',
  },
  { from: 'released', to: 'sending', when: 'the same, and the other attempt was released' },
];

/** The steps from which a write may get to this one, as a list for SQL: `'sending', 'in-doubt'`. */
export const stepsBefore = (to: Step): string =>
  transitions
    .filter((one) => one.to === to && one.from !== 'none')
    .map(({ from }) => `'${from}'`)
    .join(', ');
