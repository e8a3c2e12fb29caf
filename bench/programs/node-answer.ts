/** A bare node:http server that responds from memory. Its throughput is the upper limit for a Node server. Arguments: PORT */

import { createServer } from 'node:http';
import { cachedBody } from '../traffic.ts';

const body = Buffer.from(cachedBody);

createServer((_, response) => {
  response.writeHead(200, ['Content-Type', 'application/json', 'Content-Length', String(body.length)]);
  response.end(body);
}).listen(Number(process.argv[2]), '127.0.0.1');
