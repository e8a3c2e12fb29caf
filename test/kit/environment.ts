/** Environments of the bank, for tests of single parts. */

import { prefixesOf } from '../../src/config/resolve-defaults.ts';
import type { Environment } from '../../src/request/messages.ts';

/** An environment `sandbox` with the standard paths. */
export function environmentOf(changes: Partial<Environment> = {}): Environment {
  const { basePath = '' } = changes;
  return {
    name: 'sandbox',
    origin: 'https://bank.example',
    basePath,
    prefixes: prefixesOf(() => `${basePath}/berlingroup/v1`),
    queryParameters: 'any',
    query: {},
    callerHeaders: [],
    pollHeaders: [],
    standardVersion: '1.3.11',
    ...changes,
  };
}
