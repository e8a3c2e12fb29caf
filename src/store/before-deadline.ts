/** A database that does not answer must not keep the TPP of a request waiting past the deadline. */

import { createDeadlines } from '../request/deadlines.ts';
import { DatabaseError } from './database.ts';

/**
 * Waits for statements until the deadline of a request. They continue after it.
 *
 * @param deadlineAtMs milliseconds of `performance.now()`
 * @throws DatabaseError with the effect `unknown` at the deadline
 */
export type BeforeDeadline = <Result>(statements: Promise<Result>, deadlineAtMs: number) => Promise<Result>;

export function createBeforeDeadline(setDeadline = createDeadlines()): BeforeDeadline {
  return <Result>(statements: Promise<Result>, deadlineAtMs: number) => {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const clear = setDeadline(deadlineAtMs, () => reject(noAnswerBeforeDeadline()));
    statements.then(
      (result) => {
        clear();
        resolve(result);
      },
      (thrown: unknown) => {
        clear();
        reject(thrown);
      },
    );
    return promise;
  };
}

export const noAnswerBeforeDeadline = (): DatabaseError =>
  new DatabaseError('the database has not answered before the deadline of the request', 'unknown');
