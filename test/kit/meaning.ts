/** Gives responses of a fake bank the meaning that the gateway decides when it calls the bank. */

import assert from 'node:assert/strict';
import type { Operation } from '../../src/pis/operations.ts';
import { meaningOf } from '../../src/request/meaning.ts';
import type { PisResponse } from '../../src/request/messages.ts';
import { contentOf } from '../../src/request/read-content.ts';

/** @param response without a content coding */
export function withMeaning<Response extends PisResponse>(
  operation: Operation,
  response: Response,
  followsReleasedAttempt = false,
): Response {
  const content = contentOf(response);
  assert.ok(!(content instanceof Promise));
  return { ...response, meaning: meaningOf(operation, response, content, followsReleasedAttempt) };
}
