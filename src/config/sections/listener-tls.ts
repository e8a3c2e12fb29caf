/** TLS of a listener: the same settings for TPP systems and for operators. */

import { z } from 'zod';
import { file } from '../values.ts';

interface Descriptions {
  readonly certificate: string;
  /** What the default of `clientCertificate` follows. */
  readonly clientCertificate: string;
}

export const listenerTls = ({ certificate, clientCertificate }: Descriptions) =>
  z.strictObject({
    certFile: file().describe(certificate),
    keyFile: file().describe('The private key of the certificate, in PEM format.'),
    clientCaFile: file()
      .optional()
      .describe('The trusted CA certificates for client certificates, in PEM format.'),
    clientCertificate: z
      .enum(['off', 'optional', 'required'])
      .default('off')
      .describe(
        `\`optional\` requests a client certificate, \`required\` also refuses connections without one. Unless set, it follows ${clientCertificate}.`,
      ),
  });
