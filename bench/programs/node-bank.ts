/**
 * Simulates the bank if nginx is not installed, or if it takes a time: 600 bytes to every GET, a new payment to every POST. Arguments:
 * PORT DELAY-MS [CA-FILE CERT-FILE KEY-FILE]; with the files, it uses TLS and requires a client certificate of that authority.
 */

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { cachedBody, initiationResponse, locationOf } from '../traffic.ts';

const json = { 'Content-Type': 'application/json' };

const [, , port, delayMs, caFile, certFile, keyFile] = process.argv;

const respond: RequestListener = (...exchange) => {
  if (Number(delayMs) === 0) respondNow(...exchange);
  else setTimeout(respondNow, Number(delayMs), ...exchange);
};

const respondNow: RequestListener = (request, response) => {
  if (request.method !== 'POST') {
    response.writeHead(200, json).end(cachedBody);
    return;
  }
  const id = randomUUID();
  request.resume().on('end', () => {
    response.writeHead(201, { ...json, Location: locationOf(id), 'ASPSP-SCA-Approach': 'REDIRECT' });
    response.end(initiationResponse(id));
  });
};

const server =
  caFile && certFile && keyFile
    ? createTlsServer(
        {
          ca: readFileSync(caFile),
          cert: readFileSync(certFile),
          key: readFileSync(keyFile),
          requestCert: true,
        },
        respond,
      )
    : createServer(respond);
server.listen(Number(port), '127.0.0.1');
