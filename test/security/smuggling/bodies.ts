/** Bodies that end or continue where another parser would not, and bodies of requests that must not have one. */

import { requestText } from '../../kit/attack.ts';
import { each, get, hidden, hiddenChunk, onlyTheFirst, post, refused } from './payload.ts';

const chunked = 'Transfer-Encoding: chunked';
const size = hidden.length.toString(16);

const brokenChunks = each(
  [
    ...[
      `0x${size}\r\n`,
      `+${size}\r\n`,
      `-${size}\r\n`,
      ` ${size}\r\n`,
      `${size}\n`,
      `${size}\r`,
      `\r\n${size}\r\n`,
    ],
    ...[`${size} \r\n`, `${size}\t\r\n`, `${size}\x00\r\n`, `${size}g\r\n`, `g\r\n`, `;\r\n`, `${size}:\r\n`],
    ...[
      `${size};a\nb\r\n`,
      `${size};a\rb\r\n`,
      `${size};\x00\r\n`,
      `fffffffffffffffff\r\n`,
      `10000000000000000\r\n`,
    ],
    ...[
      `${size}\r\r\n`,
      `${size}\n\r\n`,
      `${size}\r\n\n`,
      `${size},1\r\n`,
      `${size}.0\r\n`,
      `"${size}"\r\n`,
      `-1\r\n`,
    ],
    ...[`0\n\n`, `0\r\r`, `0\r\n\n`, `0\n\r\n`, `\r\n`, `\n`, `0;\n\r\n`, `0 \r\n\r\n`],
  ],
  (line) => post([chunked], `${line}${hidden}\r\n0\r\n\r\n`),
);

const brokenData = {
  'no line end behind the data': post([chunked], `${size}\r\n${hidden}0\r\n\r\n`),
  'a bare LF behind the data': post([chunked], `${size}\r\n${hidden}\n0\r\n\r\n`),
  'more data than its size': post([chunked], `1\r\n{}\r\n0\r\n\r\n${hidden}`),
  'less data than its size': post([chunked], `9\r\n{}\r\n0\r\n\r\n`),
  'no last chunk': post([chunked], `2\r\n{}\r\n`),
  'a request instead of a chunk': post([chunked], hidden),
  'a trailer that is a request line': post([chunked], `0\r\n${hidden}`),
  'a trailer with a folded line': post([chunked], `0\r\nX: a\r\n ${hidden}`),
  'a trailer with a space before the colon': post([chunked], `0\r\nX : a\r\n\r\n${hidden}`),
  'a trailer that names a length': post(
    [chunked],
    `${hiddenChunk.slice(0, -2)}Content-Length: 4\r\nTransfer-Encoding: x\r\nHost: evil\r\n\r\n`,
  ),
  'half of it': post(['Content-Length: 99999'], hidden),
  'none of it': post(['Content-Length: 99999'], ''),
};

const unexpectedBodies = {
  'a read with a length': get([`Content-Length: ${hidden.length}`], hidden),
  'a read in chunks': get([chunked], hiddenChunk),
  'a read whose second chunk is hidden': get([chunked], `0;x\r\nX: y\r\n ${hidden}`),
  'a cancellation with a length': get([`Content-Length: ${hidden.length}`], hidden).replace('GET', 'DELETE'),
  'a cancellation in chunks': get([chunked], hiddenChunk).replace('GET', 'DELETE'),
  'HEAD with a length': get([`Content-Length: ${hidden.length}`], hidden).replace('GET', 'HEAD'),
  'HTTP/1.0 in chunks': post([chunked], hiddenChunk).replace('HTTP/1.1', 'HTTP/1.0'),
  'Expect of something else': post(['Expect: 200-ok', `Content-Length: ${hidden.length}`], hidden),
  'Expect twice': post(['Expect: 100-continue', 'Expect: x', `Content-Length: ${hidden.length}`], hidden),
  'an unknown path': requestText('POST /x HTTP/1.1', [`Content-Length: ${hidden.length}`], hidden),
  'an unknown path in chunks': requestText('POST /x HTTP/1.1', [chunked], hiddenChunk),
  'a trace': requestText('TRACE / HTTP/1.1', [`Content-Length: ${hidden.length}`], hidden),
};

const plainBytes = {
  'in a body with a length': post([`Content-Length: ${hidden.length}`], hidden),
  'in a chunk': post([chunked], hiddenChunk),
  'cut into chunks': post([chunked], `${[...hidden].map((char) => `1\r\n${char}\r\n`).join('')}0\r\n\r\n`),
  'behind a chunk extension': post([chunked], hiddenChunk.replace('\r\n', ';a=b\r\n')),
  'in a quoted chunk extension': post([chunked], hiddenChunk.replace('\r\n', ';a="GET / HTTP/1.1"\r\n')),
  'beside a size with zeros': post([chunked], `000${hiddenChunk}`),
  'behind Expect': post(['Expect: 100-continue', `Content-Length: ${hidden.length}`], hidden),
  'in a body of another type': post(
    ['Content-Type: message/http', `Content-Length: ${hidden.length}`],
    hidden,
  ).replace('Content-Type: application/json\r\n', ''),
};

export const bodies = [
  ...refused('a broken chunk', brokenChunks),
  ...refused('a broken body', brokenData),
  ...refused('an unexpected body', unexpectedBodies),
  ...onlyTheFirst('a request that is part of a body', plainBytes),
];
