/** docs/errors.md: every way in which the gateway itself fails a request. */

import { errorTable, writeAdvice } from '../../src/request/errors.ts';
import { code, madeFrom, page, table } from './markdown.ts';

const whose = { tpp: 'the TPP', gateway: 'the gateway', aspsp: 'the bank' } as const;

/** The page, from the table of errors. */
export const errorsPage = (): string =>
  page([
    '# Errors',
    madeFrom('src/request/errors.ts'),
    'What the bank answers passes through unchanged. These are the errors that the gateway makes itself: ' +
      'the code stands in the header `Penstock-Error`, the message code in the body (`tppMessages`), ' +
      'and the error type in `Proxy-Status` (RFC 9209).',
    `Where the bank can have seen a write, the text ends with: "${writeAdvice}"`,
    table(
      ['code', 'HTTP', 'message code', 'whose fault', 'can the bank have seen it', 'error type'],
      Object.entries(errorTable).map(([name, kind]) => [
        code(name),
        String(kind.status),
        code(kind.tppCode),
        whose[kind.origin],
        kind.reachedBank,
        code(kind.proxyError),
      ]),
    ),
  ]);
