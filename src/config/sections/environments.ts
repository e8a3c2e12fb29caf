/** environments: the environments of the bank, and the active one, which receives new payments. */

import { BlockList, isIP } from 'node:net';
import { z } from 'zod';
import { type OperationName, operations } from '../../pis/operations.ts';
import { closestName } from '../did-you-mean.ts';
import { callerFieldNames, fixedHeaders, fixedQuery } from '../fixed-values.ts';
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
import { clientTls } from './client-tls.ts';
import { environmentContract } from './contract.ts';
import { shapingOverrides } from './shaping.ts';
import { pathSegments, segmentsExpected } from './standard.ts';
import { deadlineOverrides } from './upstream.ts';

const tls = clientTls({
  certificate: 'The client certificate (QWAC)',
  server: 'the bank',
  defaultName: 'the host of baseUrl',
});

const signing = z.strictObject({
  certFile: file().describe('The signing certificate (QSealC), in PEM format.'),
  keyFile: file().describe('The private key of the certificate, in PEM format.'),
  algorithm: z
    .enum(['rsa-sha256', 'rsa-sha512', 'ecdsa-sha256'])
    .default('rsa-sha256')
    .describe('The signature algorithm; it must match the type of the key.'),
  keyId: z
    .string({ error: 'expected a text in quotes, such as "SN=9FA1,CA=CN=Trust%20Center"' })
    .regex(/^[\x20-\x21\x23-\x5b\x5d-\x7e]{1,1024}$/, 'expected 1 to 1024 ASCII characters without " and \\')
    .optional()
    .meta({ defaultText: '`SN=<serial number in hex>,CA=<issuer>`' })
    .describe('The keyId of signatures, if the bank expects another one than the standard.'),
  headers: z
    .array(signedName())
    .min(1, 'expected at least one name')
    .refine((names) => new Set(names).size === names.length, 'expected each name once')
    .prefault(['digest', 'x-request-id', 'psu-id', 'psu-corporate-id', 'date', 'tpp-redirect-uri'])
    .describe(
      'What a signature covers, in this order: names of header fields, each if the request has it, and `(request-target)`: the method and the path with its query.',
    ),
  addDate: z
    .boolean()
    .default(false)
    .describe('Adds `Date` to requests that have none, before they are signed.'),
});

/** The transport sets these fields after the signature, or they contain it. */
const unsignable = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'signature',
  'te',
  'transfer-encoding',
  'upgrade',
]);

function signedName() {
  const expected = 'expected a header name in lower case, or "(request-target)"';
  return z
    .string({ error: expected })
    .regex(/^(?:[!#$%&'*+.^_`|~0-9a-z-]+|\(request-target\))$/, expected)
    .refine((name) => !unsignable.has(name), 'this header cannot be signed; remove it');
}

const statusExpected = 'expected a status from 400 to 499, such as 401';

const operationNames = operations.map(({ name }) => name);

const optionalVersions = operationNames.map((name) => [name, pathSegments().optional()] as const);
type OptionalVersions = Record<OperationName, (typeof optionalVersions)[number][1]>;

const pathVersion = z.union(
  [
    pathSegments(),
    z.strictObject({
      default: pathSegments().default('v1'),
      ...(Object.fromEntries(optionalVersions) as OptionalVersions), // `fromEntries` forgets the names
    }),
  ],
  `${segmentsExpected}, such as "v1.1" in quotes; or a mapping: { default: v1.1, startAuthorisation: v1 }`,
);

const queryParameters = z
  .union(
    [
      z.literal('any'),
      z.literal('none'),
      z
        .array(z.string().min(1, 'expected the name of a parameter').max(128))
        .max(100)
        .refine((names) => new Set(names).size === names.length, 'expected each name once'),
    ],
    'expected any, none, or a list of names such as [bic]',
  )
  .transform((names) => (names === 'none' ? [] : names));

export const environment = z.strictObject(
  {
    baseUrl: webAddress()
      .refine(
        (address) => address.startsWith('https:') || isLoopback(new URL(address).hostname),
        'http: is allowed on loopback only, because payments would be sent unencrypted; use https:',
      )
      .refine(
        (address) => !isMetadata(new URL(address).hostname),
        'link-local address (169.254.0.0/16, the metadata service of cloud providers); enter the URL of the bank',
      )
      .describe("The bank's URL before its segment, without it; it may have a path."),
    segment: pathSegments()
      .optional()
      .meta({ defaultText: 'as in standard.segment' })
      .describe(
        "The bank's path between baseUrl and pathVersion: zero or more path segments. Requests go to `<baseUrl>/<segment>/<pathVersion>/payments/...`.",
      ),
    pathVersion: pathVersion
      .default('v1')
      .describe(
        "The version in the bank's path: zero or more path segments, such as `v1.1`. If the bank versions its operations separately, a mapping by their names: `{ default: v1.1, startAuthorisation: v1 }`.",
      ),
    queryParameters: queryParameters
      .prefault('any')
      .describe(
        'The names of the query parameters that TPPs may send to this environment: `any`, `none`, or a list. Other requests are refused.',
      ),
    query: fixedQuery().describe(
      'Query parameters that the gateway adds to every request to this environment, in place of those of the TPP with the same name, such as `{ bic: HABAEE2X }`. A value is a text, `{ file: PATH }` or `{ env: NAME }`; files are read at the start and at each reload.',
    ),
    headers: fixedHeaders().describe(
      "Header fields that the gateway sends with every request to this environment, its own polls, probes and pre-flights included, in place of the TPP's fields of these names, such as `{ web-api-key: { file: PATH } }`. Values as in query. Fields of the connection and of the gateway cannot be set, such as Host, Content-Type, Forwarded, X-Request-ID, Digest and Signature.",
    ),
    callerHeaders: callerFieldNames().describe(
      'Header fields of the TPP that select the bank or authorise the request, such as `[X-BIC]`. A cached status is for requests with the same values. The gateway keeps the values for the polls of waiting reads and webhooks; for webhooks they are stored encrypted, so state.encryptionKeyFile is needed.',
    ),
    pollHeaders: callerFieldNames().describe(
      'Further header fields of the TPP without which the bank refuses reads, such as `[TPP-Request-ID]`. They are kept as those in callerHeaders, but cached statuses do not depend on them. A poll always has a `Date` of its own.',
    ),
    standardVersion: z
      .string({ error: 'expected a version in quotes, such as "1.3.11"' })
      .regex(/^\d{1,3}\.\d{1,3}(\.\d{1,3})?$/, 'expected a version such as 1.3.11')
      .default('1.3.11')
      .describe('The version of NextGenPSD2 XS2A that the bank implements in this environment.'),
    tls: tls.optional().describe('The client certificate and the trusted CA certificates, for https: URLs.'),
    signing: signing
      .optional()
      .describe('Signs every request (Digest, Signature, TPP-Signature-Certificate).'),
    probePath: z
      .string()
      .regex(/^\/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*$/, 'expected a path that begins with "/"')
      .default('/')
      .describe(
        'The path after baseUrl that the gateway requests to check whether the bank is available again; any status below 500 means available.',
      ),
    probeExpects: z
      .array(z.int({ error: statusExpected }).min(400, statusExpected).max(499, statusExpected))
      .prefault([])
      .describe(
        'The statuses from 400 to 499 that the pre-flight of a switch accepts for probePath, such as `[401]` if the bank requires a token on every path. Otherwise, 401 and 403 fail the pre-flight, and other statuses of 4xx are a remark.',
      ),
    bankNotifications: z
      .enum(['off', 'forward', 'receive'])
      .default('forward')
      .describe(
        'What happens with notifications of the bank about payments. `forward`: TPP-Notification-URI and TPP-Notification-Content-Preferred go to the bank, unless the gateway itself sends webhooks to this client. `off`: they do not. `receive`: the bank notifies the gateway at notifications.publicUrl, and the gateway then reads the status for all that wait for it. If the Signature of the TPP covers one of the two headers, both always go to the bank.',
      ),
    shaping: shapingOverrides.optional().describe('Overrides of the global section shaping.'),
    deadlines: deadlineOverrides.optional().describe('Overrides of the global section deadlines.'),
    contract: environmentContract,
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
        'The environment that receives new payments when the state is new; required if there are several environments. Later, operators switch it (`penstock environment use`), and the state stores it.',
      ),
  })
  .catchall(environment)
  .superRefine(refuseBadNames, { when: () => true })
  .prefault({})
  .meta({ propertyNames: { pattern: environmentNames.source } })
  .describe(
    'The environments of the bank, by name, such as sandbox and production; at least one is required. A name has at most ' +
      '64 characters a-z and 0-9, separated by single hyphens. `active` is the setting below, and cannot be a name.',
  );

const environmentExpected = (name: PropertyKey | undefined) => {
  const expected = 'expected an environment: a mapping with baseUrl';
  return closestName(String(name), ['active']) ? `${expected} (did you mean active?)` : expected;
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
