/** A minimal proxy on node:http: two pipes, keep-alive connections. Arguments: PORT UPSTREAM-PORT */

import { Agent, createServer, request } from 'node:http';

const [port, upstreamPort] = process.argv.slice(2).map(Number);
const agent = new Agent({ keepAlive: true, maxSockets: 256 });

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
