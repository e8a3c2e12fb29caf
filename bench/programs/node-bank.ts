/** A bank on node:http, where there is no nginx: every GET with 600 bytes, every POST with a new payment. Arguments: PORT */

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { answer, created, locationOf } from '../traffic.ts';

const json = { 'Content-Type': 'application/json' };

createServer((request, response) => {
  if (request.method !== 'POST') {
    response.writeHead(200, json).end(answer);
    return;
  }
  const id = randomUUID();
  request.resume().on('end', () => {
    response.writeHead(201, { ...json, Location: locationOf(id), 'ASPSP-SCA-Approach': 'REDIRECT' });
    response.end(created(id));
  });
}).listen(Number(process.argv[2]), '127.0.0.1');
