/** Requests whose end two parsers find at different positions. */

import { each, get, hidden, hiddenChunk, post, refused } from './payload.ts';

const length = hidden.length;
const whole = `Content-Length: ${hiddenChunk.length}`;
const chunked = 'Transfer-Encoding: chunked';

const ambiguousLengths = each(
  [
    ...[`+${length}`, `-${length}`, `0${length}`, `0x${length.toString(16)}`, `${length}.0`, `${length}e0`],
    ...[`${length},${length}`, `${length}, 0`, `0, ${length}`, `${length};`, `"${length}"`, `${length} 0`],
    ...[`${length}\t0`, `1_0`, '', ' ', 'abc', '18446744073709551617', '9223372036854775808', '4294967296'],
    ...[`${length}\x0b`, `${length}\x0c`, `\x0b${length}`, `\x00${length}`, `${length}\x00`, `\xa0${length}`],
    ...['٣', '1 ', 'Infinity', 'NaN', '0b1', '0o7', '１', '-0', '+0', '00', `${length}/1`, `(${length})`],
  ].filter((value) => value !== '1 '), // spaces at the end are not part of a value
  (value) => post([`Content-Length: ${value}`], hidden),
);

const twoLengths = {
  'equal ones': post([`Content-Length: ${length}`, `Content-Length: ${length}`], hidden),
  'unequal ones': post([`Content-Length: ${length}`, 'Content-Length: 0'], hidden),
  'the smaller one first': post(['Content-Length: 0', `Content-Length: ${length}`], hidden),
  'in other cases': post(['content-length: 0', `CONTENT-LENGTH: ${length}`], hidden),
  'with others between them': post(['Content-Length: 0', 'Accept: a/b', `Content-Length: ${length}`], hidden),
  'three of them': post(['Content-Length: 0', 'Content-Length: 0', `Content-Length: ${length}`], hidden),
  'on a read': get(['Content-Length: 0', `Content-Length: ${length}`], hidden),
};

const lengthAndCoding = {
  'CL.TE': post([`Content-Length: ${5 + length}`, chunked], `0\r\n\r\n${hidden}`),
  'TE.CL': post(['Content-Length: 4', chunked], hiddenChunk),
  'coding first': post([chunked, 'Content-Length: 4'], hiddenChunk),
  'a length of zero': post(['Content-Length: 0', chunked], hiddenChunk),
  'a length that fits': post([whole, chunked], hiddenChunk),
  'on a read': get(['Content-Length: 4', chunked], hiddenChunk),
  'a list with the coding': post(['Content-Length: 4', 'Transfer-Encoding: identity, chunked'], hiddenChunk),
  'in HTTP/1.0': post([chunked, 'Content-Length: 4'], hiddenChunk).replace('HTTP/1.1', 'HTTP/1.0'),
};

const ambiguousCodings = each(
  [
    ...['xchunked', 'chunkedx', 'x chunked', 'chunked x', 'chunked,', ',chunked', 'chunked, chunked'],
    ...['identity', 'identity, chunked', 'chunked, identity', 'gzip, chunked', 'chunked, gzip', 'gzip'],
    ...['chunked;q=1', 'chunked; a=b', '"chunked"', "'chunked'", 'chunked\x00', '\x00chunked', '\x0bchunked'],
    ...[
      'chunked\x0b',
      '\x0cchunked',
      'chunked\x0c',
      'Chunked',
      'CHUNKED',
      'cHuNkEd',
      'chun\x00ked',
      'ch\xfcnked',
    ],
    ...['\xa0chunked', 'chunked\x85', 'chunked\x7f', 'chunKed', 'trailers', 'compress', 'deflate, chunked'],
    ...[
      '',
      '0',
      'null',
      'chunked%00',
      'chunked#',
      'chunked=1',
      'cow',
      'chunk',
      'chunked\t,',
      'chunked ,identity',
    ],
  ],
  (value) => post([whole, `Transfer-Encoding: ${value}`], hiddenChunk),
);

const codingsAlone = each(
  [
    ...['xchunked', 'identity', 'gzip, chunked', ', chunked', 'chunked, chunked', 'CHUNKED', 'chunked;q=1'],
    ...['identity, chunked', 'chunked, identity', 'gzip', '"chunked"', 'chunked\x0b', '\x0bchunked'],
  ],
  (value) => post([`Transfer-Encoding: ${value}`], hiddenChunk),
);

const obscuredNames = each(
  [
    ...['Transfer-Encoding : chunked', ' Transfer-Encoding: chunked', '\tTransfer-Encoding: chunked'],
    ...['Transfer-Encoding\t: chunked', 'Transfer_Encoding: chunked', 'Transfer-Encoding\x00: chunked'],
    ...['Transfer\x00-Encoding: chunked', 'Transfer-Encoding', 'X: a\rTransfer-Encoding: chunked'],
    ...[
      'X: a\nTransfer-Encoding: chunked',
      'X: a\n\rTransfer-Encoding: chunked',
      '"Transfer-Encoding": chunked',
    ],
    ...[
      'Transfer-Encoding:\r\n chunked',
      'Transfer-Encoding:\n chunked',
      'X: a\r\n Transfer-Encoding: chunked',
    ],
    ...[
      'Transfer-Encoding\xa0: chunked',
      'Transfer-Encoding\r\n: chunked',
      ': chunked',
      'Tran\u017ffer-Encoding: chunked',
    ],
    ...[
      'Content_Length: 4',
      'Content-Length : 4',
      ' Content-Length: 4',
      'Content-Length\x00: 4',
      'Content-Length:\r\n 4',
    ],
    ...['X: a\rContent-Length: 4', 'X: a\nContent-Length: 4', 'Content-Length\t: 4', 'Content Length: 4'],
  ].map((value) => Buffer.from(value).toString('latin1')),
  (value) => post([whole, value], hiddenChunk),
);

export const framing = [
  ...refused('an ambiguous length', ambiguousLengths),
  ...refused('two lengths', twoLengths),
  ...refused('a length and a coding', lengthAndCoding),
  ...refused('an ambiguous coding with a length', ambiguousCodings),
  ...refused('an ambiguous coding', codingsAlone),
  ...refused('an obscured name', obscuredNames),
];
