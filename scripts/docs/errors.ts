/** Generates docs/errors.md from the error table. */

import { errorTable, writeAdvice } from '../../src/request/errors.ts';
import { code, generatedFrom, page, table } from './markdown.ts';

const whose = { tpp: 'the TPP', gateway: 'the gateway', aspsp: 'the bank' } as const;

/** The page as Markdown. */
export const errorsPage = (): string =>
  page([
    '# Errors',
    generatedFrom('src/request/errors.ts'),
    'Errors of the bank pass through unchanged. The gateway itself generates these errors: ' +
      'the header `Penstock-Error` contains the code, the body (`tppMessages`) the message code, ' +
      'and `Proxy-Status` the error type (RFC 9209).',
    `If the bank can have seen a write, the text ends with: "${writeAdvice}"`,
    table(
      ['code', 'HTTP', 'message code', 'caused by', 'can the bank have seen it', 'error type'],
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
