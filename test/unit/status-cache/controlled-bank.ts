/** A bank whose status a test changes, and whose responses it can delay. */

import type { PisResponse } from '../../../src/request/messages.ts';
import type { Field } from '../../kit/fields.ts';
import { bankStatusResponse } from './cache-instance.ts';

/** `holdNext` delays the next response after its content was decided, until the returned function is called. */
export function createControlledBank(status: string) {
  const gates: Promise<void>[] = [];
  const answer = { status, headers: [] as readonly Field[], more: {} };
  const handle = async (): Promise<PisResponse> => {
    const response = bankStatusResponse(answer.status, answer.headers, answer.more);
    await gates.shift();
    return response;
  };
  const holdNext = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    gates.push(promise);
    return resolve;
  };
  return { answer, handle, holdNext };
}
