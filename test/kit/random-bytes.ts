/** Requests as an attacker's machine would try them: good ones, spoilt ones, and bytes at random. */

import fc from 'fast-check';
import { paymentsPath } from './attack.ts';

const nasty = fc.constantFrom(
  ...[
    '\r',
    '\n',
    '\r\n',
    '\r\n\r\n',
    '\0',
    ' ',
    '\t',
    ':',
    ';',
    ',',
    '%',
    '%2f',
    '%00',
    '..',
    '/',
    '//',
    '\\',
    '?',
  ],
  ...[
    '#',
    '_',
    '\x7f',
    '\xff',
    '0',
    '-',
    '+',
    'HTTP/1.1',
    'GET / HTTP/1.1\r\n',
    'chunked',
    '0\r\n\r\n',
    '\r\n ',
  ],
);
const anything = fc.oneof(
  nasty,
  fc.string({ maxLength: 20 }),
  fc.string({ unit: 'binary-ascii', maxLength: 300 }),
);

const good = fc.constantFrom(
  ...[
    `POST ${paymentsPath}`,
    `GET ${paymentsPath}/1`,
    `DELETE ${paymentsPath}/1`,
    `GET ${paymentsPath}/1/status`,
  ],
  ...[`POST ${paymentsPath}/1/authorisations`, `GET ${paymentsPath}/1/cancellation-authorisations/a`],
);
const tricky = fc.tuple(good, anything, fc.nat(3)).map(insertedInSegment);
const wild = fc
  .tuple(
    fc.constantFrom('GET', 'HEAD', 'OPTIONS', 'TRACE', 'CONNECT', 'PUT', 'PRI', 'get', ''),
    fc.constantFrom(`${paymentsPath}/1`, `http://evil.example${paymentsPath}/1`, '*', 'evil:1', ''),
  )
  .map((words) => words.join(' '));
const start = fc.oneof({ weight: 4, arbitrary: good }, { weight: 4, arbitrary: tricky }, wild);
const version = fc.oneof(
  { weight: 8, arbitrary: fc.constant('HTTP/1.1') },
  fc.constantFrom('HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', 'HTTP/9.9', 'HTTP/1.1 ', ''),
);
const field = fc.oneof(
  fc.constantFrom(
    ...[
      'Content-Length: 2',
      'Content-Length: 0',
      'Content-Length: 9',
      'Content-Length: 02',
      'Content-Length: 99999999',
    ],
    ...[
      'Transfer-Encoding: chunked',
      'Transfer-Encoding: gzip, chunked',
      'Transfer-Encoding : chunked',
      'TE: trailers',
    ],
    ...[
      'Expect: 100-continue',
      'Expect: x',
      'Connection: close',
      'Connection: keep-alive',
      'Connection: Digest',
    ],
    ...[
      'Upgrade: h2c',
      'Connection: Upgrade',
      'X-Request-ID: 1',
      'Host: b',
      'X_A: b',
      'Accept: a/b;q=2',
      '__proto__: a',
    ],
  ),
  fc.tuple(fc.string({ maxLength: 20 }), anything).map(([name, value]) => `${name}: ${value}`),
  anything,
);
const fields = fc.oneof(
  { weight: 3, arbitrary: fc.constant([]) },
  fc.array(field, { minLength: 1, maxLength: 3 }),
);
const body = fc.oneof(
  fc.constantFrom('', '{}', '2\r\n{}\r\n0\r\n\r\n', '{}GET / HTTP/1.1\r\n\r\n', '5\r\n{}'),
  anything,
);

const request = fc.record({ start, version, fields, body, id: fc.uuid() }).map((parts) => {
  const usual = ['Host: a', `X-Request-ID: ${parts.id}`, 'PSU-IP-Address: 192.0.2.1'];
  const head = [`${parts.start} ${parts.version}`, ...usual, ...parts.fields];
  return `${head.join('\r\n')}\r\n\r\n${parts.body}`;
});
const spoilt = fc.tuple(request, anything, fc.nat(400)).map(inserted);

/** What is sent on one connection, in packets. */
export interface Conversation {
  readonly requests: number;
  readonly packets: readonly string[];
}

/** Some requests, some of them spoilt, cut into two packets at any place. */
export const randomConversation: fc.Arbitrary<Conversation> = fc
  .tuple(
    fc.array(fc.oneof({ weight: 4, arbitrary: request }, spoilt, anything), { minLength: 1, maxLength: 3 }),
    fc.nat(500),
  )
  .map(([texts, cut]) => ({
    requests: texts.length,
    packets: [texts.join('').slice(0, cut), texts.join('').slice(cut)],
  }));

function insertedInSegment([text, piece, index]: readonly [string, string, number]): string {
  return text
    .split('/')
    .map((segment, at, { length }) => (at === length - 1 - index ? segment + piece : segment))
    .join('/');
}

function inserted([text, piece, at]: readonly [string, string, number]): string {
  return text.slice(0, at) + piece + text.slice(at);
}
