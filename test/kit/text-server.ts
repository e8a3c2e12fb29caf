/** A server that answers each request with a text that a test has written: also one that is no HTTP, or cut off. */

import { createServer } from 'node:net';
import { listen } from './ports.ts';
import type { TestScope } from './test-scope.ts';

/** @param answerTo gets the text of a complete request @returns the address; closed when the test ends */
export async function startTextServer(
  life: TestScope,
  answerTo: (request: string) => string,
): Promise<string> {
  const server = createServer((socket) => {
    let request = '';
    socket.on('error', () => {}).setEncoding('latin1');
    socket.on('data', (text) => {
      request += text;
      const [, length = '0'] = /content-length: (\d+)/i.exec(request) ?? [];
      const [, body] = request.split('\r\n\r\n', 2);
      if (body !== undefined && body.length >= Number(length)) socket.end(answerTo(request));
    });
  });
  const url = `http://127.0.0.1:${await listen(server)}`;
  life.after(() => server.close());
  return url;
}
