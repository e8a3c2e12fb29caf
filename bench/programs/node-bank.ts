/** Simulates the bank if nginx is not installed: 600 bytes to every GET, a new payment to every POST. Arguments: PORT */

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { cachedBody, initiationResponse, locationOf } from '../traffic.ts';

const json = { 'Content-Type': 'application/json' };

createServer((request, response) => {
  if (request.method !== 'POST') {
    response.writeHead(200, json).end(cachedBody);
    return;
  }
  const id = randomUUID();
  request.resume().on('end', () => {
    response.writeHead(201, { ...json, Location: locationOf(id), 'ASPSP-SCA-Approach': 'REDIRECT' });
    response.end(initiationResponse(id));
  });
}).listen(Number(process.argv[2]), '127.0.0.1');
