/** Checks one message against several contracts. Runs in the main thread for small messages, and in the worker thread for large ones. */

import type { SatisfiesAll } from '../contract/compile-schemas.ts';
import type { Contract } from '../contract/contract.ts';
import type { Deviation } from '../contract/deviation.ts';
import { inspectRequest, type JudgedRequest, judgeRequest } from '../contract/judge-request.ts';
import { inspectResponse, type JudgedResponse, judgeResponse } from '../contract/judge-response.ts';

export type CheckableMessage =
  | { readonly direction: 'request'; readonly content: JudgedRequest }
  | { readonly direction: 'response'; readonly content: JudgedResponse };

/**
 * @param satisfiesAll the combined check of these contracts, or of more
 * @returns the deviations from each contract, in the order of the judges
 */
export function checkMessage(
  message: CheckableMessage,
  judges: readonly { readonly contract: Contract }[],
  satisfiesAll?: SatisfiesAll,
): readonly (readonly Deviation[])[] {
  switch (message.direction) {
    case 'request': {
      const inspected = inspectRequest(message.content, satisfiesAll);
      return judges.map(({ contract }) => judgeRequest(contract, inspected));
    }
    case 'response': {
      const inspected = inspectResponse(message.content);
      return judges.map(({ contract }) => judgeResponse(contract, inspected));
    }
  }
}
