/** A minimal proxy on node:http: two pipes, keep-alive connections. Arguments: proxy-arguments.ts */

import { createServer, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { createAgent, port, tls, upstreamPort } from './proxy-arguments.ts';

const agent = createAgent();
const request = tls ? requestHttps : requestHttp;

createServer((incoming, outgoing) => {
  const { method, url: path, headers } = incoming;
  const call = request(
    { host: '127.0.0.1', port: upstreamPort, agent, method, path, headers },
    (answered) => {
      outgoing.writeHead(answered.statusCode ?? 502, answered.rawHeaders);
      answered.pipe(outgoing);
    },
  );
  call.on('error', () => outgoing.destroy());
  incoming.pipe(call);
}).listen(port, '127.0.0.1');
