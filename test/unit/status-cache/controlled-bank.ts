/** A bank whose status the test moves on, and whose answers it can hold up. */

import type { PisResponse } from '../../../src/request/messages.ts';
import type { Field } from '../../kit/fields.ts';
import { statusResponse } from './cache-instance.ts';

/** A bank that says `now`, and with these fields while they are set; an answer can be held after it was decided. */
export function createControlledBank(first: string) {
  const gates: Promise<void>[] = [];
  const told = { now: first, fields: [] as readonly Field[], more: {} };
  const says = async (): Promise<PisResponse> => {
    const answer = statusResponse(told.now, told.fields, told.more);
    await gates.shift();
    return answer;
  };
  const hold = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    gates.push(promise);
    return resolve;
  };
  return { told, says, hold };
}
