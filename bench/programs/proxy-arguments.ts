/** The arguments of the proxies: PORT UPSTREAM-PORT [CA-FILE CERT-FILE KEY-FILE]; with the files, the bank uses TLS. */

import { readFileSync } from 'node:fs';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';

const [, , first, second, caFile, certFile, keyFile] = process.argv;

export const port = Number(first);
export const upstreamPort = Number(second);

/** The authority of the bank, and the client certificate; `undefined` for a bank without TLS. */
export const tls =
  caFile && certFile && keyFile
    ? { ca: readFileSync(caFile), cert: readFileSync(certFile), key: readFileSync(keyFile) }
    : undefined;

export const upstream = `${tls ? 'https' : 'http'}://127.0.0.1:${upstreamPort}`;

/** As many connections as Penstock may use. */
export const maxSockets = 256;

/** Keeps connections to the bank alive. */
export const createAgent = () => {
  const options = { keepAlive: true, maxSockets };
  return tls ? new HttpsAgent({ ...options, ...tls }) : new HttpAgent(options);
};
