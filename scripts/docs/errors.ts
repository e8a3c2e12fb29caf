/** Generates the error reference as Markdown and as HTML, from the error table, the descriptions and example responses. */

import { errorResponse } from '../../src/http/write-error.ts';
import { type ErrorCode, errorTable, GatewayError, withAdvice } from '../../src/request/errors.ts';
import { errorDescriptions } from './error-descriptions.ts';
import { code, generatedFrom, page, table } from './markdown.ts';

const codes = Object.keys(errorTable) as ErrorCode[]; // the keys of a record are its keys
const whose = { tpp: 'the TPP system', gateway: 'the gateway', aspsp: 'the bank' } as const;
const reached = { no: 'No.', maybe: 'Possibly.' } as const;

const introduction = [
  'For developers of TPP systems: the errors that the gateway itself generates. A response with the header `Penstock-Error` is one ' +
    'of these, and the header contains the code. All other errors come from the bank and pass unchanged.',
  'The body is `tppMessages` of the standard, or `application/problem+json` if `Accept` prefers it. `Proxy-Status` contains an ' +
    'error type of RFC 9209. `Retry-After` contains the seconds to wait before a repeat. If the operators have set ' +
    '`listen.errorPageUrl`, `Link` with `rel="help"` leads to the section of the code.',
  'Two rules prevent double payments: repeat a request only with the same `X-Request-ID`, and do not initiate a payment again ' +
    'while the outcome of the first request is unknown. [Submit payments reliably](callers/submit-payments.md) explains them.',
];
const tableHead = ['code', 'HTTP status', 'message code', 'can the bank have received the request', 'retry'];

/** docs/errors.md. The headings are the anchors that `Link` refers to. */
export const errorsPage = (): string =>
  page([
    '# Errors',
    generatedFrom('src/request/errors.ts and scripts/docs/error-descriptions.ts'),
    ...introduction,
    table(tableHead, codes.map(overviewRow)),
    ...codes.flatMap((name) => [
      `## ${name}`,
      errorDescriptions[name].meaning,
      list(facts(name)),
      ...(reasonsOf(name).length > 0 ? [reasonsTitle, list(reasonsOf(name))] : []),
      ['```http', ...exampleResponse(name), '```'].join('\n'),
    ]),
  ]);

/** The same page for the admin listener, with the same anchors. */
export const errorsHtml = (): string => `<!doctype html>
<html lang="en-GB">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Penstock errors</title>
    <link rel="icon" href="/icon.svg" type="image/svg+xml" />
    <link rel="stylesheet" href="/base.css" />
    <link rel="stylesheet" href="/errors.css" />
  </head>
  <body>
    <main>
      <h1>Errors</h1>
${introduction.map((text) => `      <p>${html(text)}</p>`).join('\n')}
      <table>
        <thead><tr>${tableHead.map((cell) => `<th scope="col">${html(cell)}</th>`).join('')}</tr></thead>
        <tbody>
${codes.map((name) => `          <tr>${overviewRow(name).map(cellOf).join('')}</tr>`).join('\n')}
        </tbody>
      </table>
${codes.map(htmlSection).join('\n')}
    </main>
  </body>
</html>
`;

const htmlSection = (name: ErrorCode) =>
  `      <h2 id="${anchorOf(name)}">${name}</h2>
      <p>${html(errorDescriptions[name].meaning)}</p>${htmlList(facts(name))}${
        reasonsOf(name).length > 0 ? `<p>${reasonsTitle}</p>${htmlList(reasonsOf(name))}` : ''
      }
<pre>${exampleResponse(name).map(html).join('\n')}</pre>`;

const htmlList = (items: readonly string[]) =>
  `<ul>${items.map((item) => `<li>${html(item)}</li>`).join('')}</ul>`;

const list = (items: readonly string[]) => items.map((item) => `- ${item}`).join('\n');

const reasonsTitle = 'The reasons:';
const reasonsOf = (name: ErrorCode) => errorDescriptions[name].reasons ?? [];

const anchorOf = (name: ErrorCode) => name.toLowerCase();

const overviewRow = (name: ErrorCode): readonly string[] => [
  `[${name}](#${anchorOf(name)})`,
  String(errorTable[name].status),
  code(errorTable[name].tppCode),
  errorTable[name].reachedBank,
  errorDescriptions[name].retry,
];

function facts(name: ErrorCode): readonly string[] {
  const { status, tppCode, origin, proxyError, reachedBank } = errorTable[name];
  return [
    `**HTTP status** ${status}, message code ${code(tppCode)}, error type ${code(proxyError)}. Caused by ${whose[origin]}.`,
    `**Can the bank have received the request?** ${reached[reachedBank]}`,
    `**Retry:** ${errorDescriptions[name].action}`,
  ];
}

/** The response as the gateway writes it. */
function exampleResponse(name: ErrorCode): readonly string[] {
  const { text, ...details } = errorDescriptions[name].example;
  const error = withAdvice(new GatewayError(name, text, details), { name: 'initiatePayment', lane: 'write' });
  const requestId = '99391c7e-ad88-49ec-a2ad-99ddcb1f7721';
  const { status, reason, headers, body } = errorResponse(error, { requestId, accept: undefined });
  return [
    `HTTP/1.1 ${status} ${reason}`,
    ...headers.map(([field, value]) => `${field}: ${value}`),
    '',
    body.toString('utf8'),
  ];
}

const cellOf = (cell: string) => `<td>${html(cell)}</td>`;

/** The Markdown of the descriptions as HTML: code, bold text, and links within the page. Other links become text. */
const html = (markdown: string): string =>
  markdown
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
    .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')
    .replaceAll(/\[([^\]]+)\]\((#[^)]+)\)/g, '<a href="$2">$1</a>')
    .replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1');
