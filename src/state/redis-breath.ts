/** Asks Redis all at once what is asked in one breath: a question costs the client, the kernel and Redis more than a command. */

import { stateUnavailable } from '../flow/errors.ts';
import { type AnswerTo, reasonOf } from './redis-answer.ts';
import { mostCharacters } from './redis-scripts.ts';

/** A command on one key. */
export interface Command {
  readonly name: string;
  readonly key: string;
  readonly words: readonly (string | number | Buffer)[];
}

/** Carries commands out in their order, the first at least. @returns of each that was its answer, or an error */
export type CarryOut = (commands: readonly Command[]) => Promise<readonly unknown[]>;

/** @throws GatewayError STATE_UNAVAILABLE as `AnswerTo` does, or with what Redis says against this command */
export type Ask = (name: string, key: string, ...words: Command['words']) => Promise<unknown>;

interface Asked extends Command, PromiseWithResolvers<unknown> {}

/**
 * Asked from within promises, as all of ours are, one breath lasts until no promise is due any more.
 *
 * @param mostTogether how many commands Redis may be asked to carry out without doing anything else
 */
export function inOneBreath(carryOut: CarryOut, answerTo: AnswerTo, mostTogether: number): Ask {
  let asked: Asked[] = [];

  function breathe(): void {
    const all = asked;
    asked = [];
    let together: Asked[] = [];
    let characters = 0;
    for (const one of all) {
      together.push(one);
      for (const word of one.words) characters += typeof word === 'number' ? 0 : word.length;
      if (together.length < mostTogether && characters < mostCharacters) continue;
      void carriedOut(together);
      together = [];
      characters = 0;
    }
    if (together.length > 0) void carriedOut(together);
  }

  async function carriedOut(together: readonly Asked[]): Promise<void> {
    try {
      const answers = await answerTo(() => carryOut(together));
      if (answers.length < together.length) void carriedOut(together.slice(answers.length));
      for (const [index, { resolve, reject }] of together.slice(0, answers.length).entries()) {
        const answer = answers[index];
        if (answer instanceof Error) reject(stateUnavailable(new Error(reasonOf(answer))));
        else resolve(answer);
      }
    } catch (thrown) {
      for (const { reject } of together) reject(thrown);
    }
  }

  return (name, key, ...words) => {
    const one = { name, key, words, ...Promise.withResolvers<unknown>() };
    if (asked.length === 0) process.nextTick(breathe);
    asked.push(one);
    return one.promise;
  };
}
