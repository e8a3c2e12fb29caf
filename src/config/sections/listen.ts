/** listen: the listener for TPP systems. */

import { isIP } from 'node:net';
import { z } from 'zod';
import { size } from '../units.ts';
import { file, flag, host, port, webAddress } from '../values.ts';

const tls = z.strictObject({
  certFile: file().describe('The certificate of the gateway, with its chain, as PEM.'),
  keyFile: file().describe('Its private key, as PEM.'),
  clientCaFile: file().optional().describe('The trusted authorities for client certificates, as PEM.'),
  clientCertificate: z
    .enum(['off', 'optional', 'required'])
    .default('off')
    .describe(
      'Whether the gateway requests a client certificate, and whether it requires one. Unless set, it follows clients: optional if one has certificateSha256 and clientCaFile is set.',
    ),
});

export const listen = z
  .strictObject({
    host: host('127.0.0.1').describe(
      'The address to listen on; 0.0.0.0 and :: stand for all addresses of the machine.',
    ),
    port: port(8080).describe(
      'The port to listen on; 0 takes any free one. Unless set, it follows admin.port: the next port if both listeners would have the same address.',
    ),
    publicUrl: webAddress()
      .optional()
      .meta({ defaultText: 'from host and port: http://127.0.0.1:8080' })
      .describe(
        'The URL of the gateway for TPP systems, used only for links in responses. The proxy in front removes its path from requests.',
      ),
    errorPageUrl: webAddress()
      .nullable()
      .optional()
      .meta({ defaultText: 'the copy on the admin listener, or null' })
      .describe(
        'The address of the error reference (docs/errors.md or errors.html) that you publish for developers of TPP systems; each error of the gateway links to its code there. Unless set: errors.html on the admin listener if publicUrl and the admin listener are on loopback, otherwise null, no link.',
      ),
    maxBody: size('1MiB', { max: '64MiB' }).describe('The largest body a request may have.'),
    reusePort: flag(false).describe(
      'Lets several processes on one machine share the port; this requires Redis for the state.',
    ),
    trustedProxies: z
      .array(z.string().refine(isNetwork, 'expected an IP address or a network such as 10.0.0.0/8'))
      .default([])
      .describe(
        'The proxies, by address or network, whose X-Forwarded-For is trusted; it is only used to log the network that refused requests come from.',
      ),
    tls: tls.optional().describe('Makes the listener speak TLS; without it, it speaks plain HTTP.'),
  })
  .prefault({})
  .describe('Where TPP systems reach the gateway.');

function isNetwork(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const longest = isIP(address) === 4 ? 32 : 128;
  if (isIP(address) === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= longest);
}
