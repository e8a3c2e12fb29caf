/** listen: the listener for TPP systems. */

import { z } from 'zod';
import { isNetwork } from '../network-list.ts';
import { duration, size } from '../units.ts';
import { count, flag, host, port, webAddress } from '../values.ts';
import { listenerTls } from './listener-tls.ts';

export const listen = z
  .strictObject({
    host: host('127.0.0.1').describe(
      'The address to listen on; 0.0.0.0 and :: mean all addresses of the host. If other hosts can reach it, configure clients.',
    ),
    port: port(8080).describe(
      'The port to listen on; 0 selects a free port. Unless set, it follows admin.port: the next port if both listeners would have the same address.',
    ),
    publicUrl: webAddress()
      .optional()
      .meta({ defaultText: 'from host and port: http://127.0.0.1:8080' })
      .describe(
        'The URL of the gateway for TPP systems, used only for links in responses. If it has a path, the proxy in front must remove this path from requests.',
      ),
    errorPageUrl: webAddress()
      .nullable()
      .optional()
      .meta({ defaultText: 'the copy on the admin listener, or null' })
      .describe(
        'The address of the error reference (docs/errors.md or errors.html) that you publish for developers of TPP systems; each error of the gateway links to its code there. Unless set: errors.html on the admin listener if publicUrl and the admin listener are on loopback, otherwise null, no link.',
      ),
    maxBody: size('1MiB', { max: '64MiB' }).describe('The maximum size of a request body.'),
    maxConnections: count(5000).describe(
      'The maximum number of connections of one instance. At most half of them are used by status reads that wait for a change. The limit of open files must be higher.',
    ),
    idleTimeout: duration('620s', { min: '1s', max: '1h' }).describe(
      'The time after which an idle connection of a TPP system is closed; it must be longer than the idle timeout of a load balancer in front of the gateway.',
    ),
    reusePort: flag(false).describe(
      'Allows several processes on one host to share the port (SO_REUSEPORT); requires state.postgres.',
    ),
    trustedProxies: z
      .array(
        z
          .string()
          .refine(
            isNetwork,
            'expected an IP address, or a network with the length of its prefix, such as 10.0.0.0/8',
          ),
      )
      .default([])
      .describe(
        'The addresses or networks of proxies whose X-Forwarded-For is trusted. It is used only to log the network that refused requests come from.',
      ),
    tls: listenerTls({
      certificate: 'The server certificate of the gateway with its chain, in PEM format.',
      clientCertificate: 'clients: optional if one has certificateSha256 and clientCaFile is set',
    })
      .optional()
      .describe('TLS settings of the listener; without them, it uses plain HTTP.'),
  })
  .prefault({})
  .describe('The listener for TPP systems.');
