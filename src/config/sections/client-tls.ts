/** TLS of connections that the gateway opens: to a bank, or to Redis. */

import { z } from 'zod';
import { file } from '../values.ts';

interface Descriptions {
  /** What the client certificate is, such as `The client certificate (QWAC)`. */
  readonly certificate: string;
  /** Whose certificate is checked, such as `the bank`. */
  readonly server: string;
  /** Where the expected name comes from. */
  readonly defaultName: string;
}

export const clientTls = ({ certificate, server, defaultName }: Descriptions) =>
  z.strictObject({
    certFile: file().optional().describe(`${certificate} with its chain, in PEM format; requires keyFile.`),
    keyFile: file()
      .optional()
      .describe('The private key of the certificate, in PEM format; requires certFile.'),
    caFile: file()
      .optional()
      .meta({ defaultText: 'the CA certificates of Node' })
      .describe('The trusted CA certificates, in PEM format.'),
    serverName: z
      .string()
      .min(1)
      .optional()
      .meta({ defaultText: defaultName })
      .describe(`The name that the certificate of ${server} must contain.`),
  });
