/** environments: the environments of the bank, and which one new payments go to. */

import { BlockList, isIP } from 'node:net';
import { z } from 'zod';
import { closestName } from '../did-you-mean.ts';
import { isMapping } from '../object-path.ts';
import {
  environmentName,
  environmentNameExpected,
  environmentNames,
  file,
  hostWithoutBrackets,
  isLoopback,
  webAddress,
} from '../values.ts';
import { shapingOverrides } from './shaping.ts';

const tls = z.strictObject({
  certFile: file().optional().describe('The client certificate (QWAC) with its chain, as PEM.'),
  keyFile: file().optional().describe('Its private key, as PEM.'),
  caFile: file()
    .optional()
    .meta({ defaultText: 'those of Node' })
    .describe('The trusted authorities, as PEM.'),
  serverName: z
    .string()
    .min(1)
    .optional()
    .meta({ defaultText: 'the host of baseUrl' })
    .describe("The name that the bank's certificate must contain."),
});

const signing = z.strictObject({
  certFile: file().describe('The certificate for signatures (QSEAL), as PEM.'),
  keyFile: file().describe('Its private key, as PEM.'),
  algorithm: z
    .enum(['rsa-sha256', 'rsa-sha512', 'ecdsa-sha256'])
    .default('rsa-sha256')
    .describe('How requests are signed; the key must fit.'),
});

export const environment = z.strictObject(
  {
    baseUrl: webAddress()
      .refine(
        (address) => address.startsWith('https:') || isLoopback(new URL(address).hostname),
        'plain http: is for loopback only, or payments would travel unencrypted; write https:',
      )
      .refine(
        (address) => !isMetadata(new URL(address).hostname),
        'this is the metadata service of a cloud, not a bank',
      )
      .describe("The part of the bank's URLs before the standard's segment; it may have a path."),
    movedFrom: z
      .array(webAddress())
      .prefault([])
      .describe(
        'Earlier values of baseUrl under which this was the same bank: payments created there continue at the new address. Without it, they are refused.',
      ),
    standardVersion: z
      .string({ error: 'expected a version in quotes, such as "1.3.11"' })
      .regex(/^\d{1,3}\.\d{1,3}(\.\d{1,3})?$/, 'expected a version such as 1.3.11')
      .default('1.3.11')
      .describe('The version of NextGenPSD2 XS2A that the bank implements there.'),
    tls: tls.optional().describe('The client certificate and the trusted authorities, for https: addresses.'),
    signing: signing
      .optional()
      .describe('Signs every request (Digest, Signature, TPP-Signature-Certificate).'),
    probePath: z
      .string()
      .regex(/^\/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*$/, 'expected a path that begins with a slash')
      .default('/')
      .describe(
        'The path after baseUrl that is requested to find out whether the bank is available again; any response below 500 means yes.',
      ),
    shaping: shapingOverrides
      .optional()
      .describe('What differs from the global shaping in this environment.'),
  },
  {
    error: (issue) => (issue.code === 'invalid_type' ? environmentExpected(issue.path?.at(-1)) : undefined),
  },
);

export const environments = z
  .object({
    active: environmentName()
      .optional()
      .meta({ defaultText: 'the only one' })
      .describe(
        'Where new payments go at the first start; operators change it at run time, and the state remembers it.',
      ),
  })
  .catchall(environment)
  .superRefine(refuseBadNames, { when: () => true })
  .prefault({})
  .meta({ propertyNames: { pattern: environmentNames.source } })
  .describe('The environments of the bank, by name: sandbox, production or any other name; at least one.');

const environmentExpected = (name: PropertyKey | undefined) => {
  const expected = 'expected an environment: a mapping with baseUrl in it';
  return closestName(String(name), ['active']) ? `${expected}; or did you mean active?` : expected;
};

/** Runs even if an environment is invalid: otherwise that error would hide this one. */
function refuseBadNames(all: unknown, context: z.RefinementCtx): void {
  if (!isMapping(all)) return;
  for (const name of Object.keys(all).filter((key) => !environmentNames.test(key)))
    context.addIssue({ code: 'custom', path: [name], message: environmentNameExpected });
}

function isMetadata(hostname: string): boolean {
  const bare = hostWithoutBrackets(hostname);
  const family = isIP(bare);
  return family !== 0 && metadata.check(bare, family === 4 ? 'ipv4' : 'ipv6');
}

const metadata = new BlockList();
metadata.addSubnet('169.254.0.0', 16, 'ipv4');
