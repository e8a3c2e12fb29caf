/** Bare node:http that answers from memory: what no Node server can exceed. Arguments: PORT */

import { createServer } from 'node:http';
import { answer } from '../traffic.ts';

const body = Buffer.from(answer);

createServer((_, response) => {
  response.writeHead(200, ['Content-Type', 'application/json', 'Content-Length', String(body.length)]);
  response.end(body);
}).listen(Number(process.argv[2]), '127.0.0.1');
