/** listen: where TPP systems reach the gateway. */

import { isIP } from 'node:net';
import { z } from 'zod';
import { size } from '../units.ts';
import { file, flag, host, port, webAddress } from '../values.ts';

const tls = z.strictObject({
  certFile: file().describe('The certificate of the gateway, with its chain, as PEM.'),
  keyFile: file().describe('Its private key, as PEM.'),
  clientCaFile: file().optional().describe('The authorities whose client certificates are believed, as PEM.'),
  clientCertificate: z
    .enum(['off', 'optional', 'required'])
    .default('off')
    .describe('Whether a TPP system is asked for a certificate, and whether it gets in without one.'),
});

export const listen = z
  .strictObject({
    host: host('127.0.0.1').describe(
      'The address to listen on; 0.0.0.0 and :: stand for every one of the machine.',
    ),
    port: port(8080).describe('The port to listen on; 0 takes any free one.'),
    publicUrl: webAddress()
      .optional()
      .meta({ defaultText: 'made of host and port, so http://127.0.0.1:8080' })
      .describe(
        'How TPP systems address the gateway. Only for links that go out: a path in it is removed by whatever stands in front.',
      ),
    maxBody: size('1MiB', { max: '64MiB' }).describe('The largest body a request may have.'),
    reusePort: flag(false).describe(
      'Lets several processes of one machine share the port; they need Redis for the state.',
    ),
    trustedProxies: z
      .array(z.string().refine(isNetwork, 'expected an IP address or a network such as 10.0.0.0/8'))
      .default([])
      .describe(
        'The proxies, by address or network, whose X-Forwarded-For is believed: it tells the log from which network refused requests come, and decides nothing.',
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
