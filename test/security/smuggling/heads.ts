/** Heads and request lines that another parser splits differently. */

import { paymentsPath } from '../../kit/attack.ts';
import { each, get, hidden, mark, onlyTheFirst, post, refused } from './payload.ts';

const smuggledLine = hidden.split('\r\n')[0] ?? '';
const usual = 'Host: a\r\nX-Request-ID: 99391c7e-ad88-49ec-a2ad-99ddcb1f7721\r\n';

const lineEnds = each(
  ['\n', '\r', '\n\r', '\r\r\n', '\x0b\r\n', '\x85', '\x00\r\n', ' \n'],
  (end) => `GET ${paymentsPath}/1 HTTP/1.1${end}${usual}\r\n${hidden}`,
);

const headEnds = each(
  ['\n\n', '\r\r', '\r\n\n', '\n\r\n', '\r\n\r', '\r\n \r\n', '\r\n\t\r\n', '\r\n\x00\r\n\r\n'],
  (end) => `GET ${paymentsPath}/1 HTTP/1.1\r\n${usual.trimEnd()}${end}${hidden}`,
);

const values = each(
  [
    'a\rb',
    'a\nb',
    'a\x00b',
    'a\x01b',
    'a\x7fb',
    'a\r\n b',
    'a\r\n\tb',
    `a\r${smuggledLine}`,
    `a\n${smuggledLine}`,
  ],
  (value) => get([`X-A: ${value}`], hidden),
);

const names = each(
  [
    'X A: b',
    'X-A',
    ': b',
    'X\x00A: b',
    'X\xe4: b',
    'X(A): b',
    'X@A: b',
    'X_A: b',
    'X{A}: b',
    'X/A: b',
    '[X]: b',
    'X"A": b',
  ],
  (field) => get([field], hidden),
);

const hosts = {
  'two Hosts': get(['Host: evil'], hidden),
  'two Hosts in other cases': get(['hOST: evil'], hidden),
  'no Host': get([], hidden).replace('Host: gateway.example\r\n', ''),
  'a folded Host': get([], hidden).replace('gateway.example', 'a\r\n evil'),
  'a Host with a space before the colon': get(['Host : evil'], hidden),
};

const connections = each(
  [
    'Content-Length',
    'Transfer-Encoding',
    'Host',
    'X-Request-ID',
    'close, Content-Length',
    'Expect',
    'Digest',
  ],
  (option) => post([`Connection: ${option}`, `Content-Length: ${hidden.length}`], hidden),
);

const versions = each(
  [
    ...[
      'HTTP/0.9',
      'HTTP/1.2',
      'HTTP/2.0',
      'HTTP/3',
      'HTTP/11',
      'HTTP/1.10',
      'HTTP/1,1',
      'HTTP /1.1',
      'http/1.1',
      'ICY/1.1',
    ],
    ...['HTTP/1.1 HTTP/1.1', 'HTTP/1.1x', 'HTTPS/1.1', 'HTTP/01.1', '', 'HTTP/1.1\t', 'HTTP/\x001.1'],
  ],
  (version) => `GET ${paymentsPath}/1 ${version}\r\n${usual}\r\n${hidden}`,
);

const targets = each(
  [
    ...[
      `http://a${paymentsPath}/1`,
      `//a${paymentsPath}/1`,
      '*',
      'a:443',
      `${paymentsPath}/1 ${paymentsPath}/2`,
      '',
    ],
    ...[
      `${paymentsPath}/..%2f${mark}`,
      `${paymentsPath}/../${mark}/1`,
      `${paymentsPath}/%2e%2e/${mark}`,
      `\\${mark}`,
    ],
    ...[
      `${paymentsPath}/1%0d%0a${mark}`,
      `${paymentsPath}/1%00`,
      `${paymentsPath}/1#${mark}`,
      `${paymentsPath}/1?${mark}|`,
    ],
    ...[
      `${paymentsPath}/1;${mark}`,
      `${paymentsPath}/1\t${mark}`,
      `${paymentsPath}/1\x00${mark}`,
      `${paymentsPath}/1\x7f`,
    ],
    ...[
      `${paymentsPath}/1%20HTTP/1.1%0d%0aHost:%20${mark}`,
      `${paymentsPath}/%252e%252e/${mark}`,
      `${paymentsPath}/\xe4`,
    ],
  ],
  (target) => `GET ${target} HTTP/1.1\r\n${usual}Connection: close\r\n\r\n${hidden}`,
);

const methods = each(
  [
    'CONNECT',
    'get',
    'GeT',
    'G\x00ET',
    'GET\t',
    ' GET',
    'PRI',
    'SMUGGLED',
    'GET POST',
    '"GET"',
    'TRACE',
    'TRACK',
    'QUERY',
  ],
  (method) => `${method} ${paymentsPath}/1 HTTP/1.1\r\n${usual}Connection: close\r\n\r\n${hidden}`,
);

const otherProtocols = {
  'the opening of HTTP/2': `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${hidden}`,
  'a TLS greeting': `\x16\x03\x01\x02\x00\x01${hidden}`,
  'the PROXY protocol': `PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n${hidden}`,
  'a line of junk first': `junk\r\n${hidden}`,
  'an answer instead of a request': `HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n${hidden}`,
  'a NUL first': `\x00${hidden}`,
  'a space first': ` ${hidden}`,
};

/** A request with Upgrade: what follows would belong to the other protocol, so nothing of it is parsed. */
const upgrades = each(
  ['h2c', 'websocket', 'TLS/1.0', 'HTTP/2.0', 'h2c, websocket', 'x'],
  (protocol) =>
    get(['Connection: Upgrade, HTTP2-Settings', `Upgrade: ${protocol}`, 'HTTP2-Settings: AAMAAABkAAQAAP__']) +
    hidden,
);

const lastOnes = {
  'behind Connection: close': get(['Connection: close']) + hidden,
  'behind an HTTP/1.0 read': get([]).replace('HTTP/1.1', 'HTTP/1.0') + hidden,
};

/** Node's parser reads these as HTTP and keeps the first connection open. */
const readsInRtsp: Readonly<Record<string, string>> = {
  'behind an RTSP/1.1 read': get([]).replace('HTTP/1.1', 'RTSP/1.1') + hidden,
  'behind an RTSP/1.0 read': get([]).replace('HTTP/1.1', 'RTSP/1.0') + hidden,
};

export const heads = [
  ...refused('the end of the request line', lineEnds),
  ...refused('the end of the head', headEnds),
  ...refused('a value', values),
  ...refused('a name', names),
  ...refused('a Host', hosts),
  ...refused('Connection names an important field', connections),
  ...refused('a version', versions),
  ...refused('a target', targets),
  ...refused('a method', methods),
  ...refused('another protocol', otherProtocols),
  ...refused('RTSP', readsInRtsp),
  ...onlyTheFirst('an upgrade', upgrades),
  ...onlyTheFirst('the last request of a connection', lastOnes),
];
