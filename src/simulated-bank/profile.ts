/**
 * The profile of a bank: in which forms its interface differs from the standard's examples. `penstock bank --like FILE` reads
 * one; a bank without a file has the default of every setting.
 *
 * Templates: `{origin}` is the bank's origin, `{path}` the path of the operation before `/{payment-service}`, `{version}` its
 * version alone, `{payment}` the link of the payment (in `ids.authorisation`, its id), `{authorisation}` the id of the authorisation, `{hash}` six characters
 * that depend on the id, `{random}` twelve random ones.
 */
import { z } from 'zod';
import { joinPath, operations } from '../pis/operations.ts';

const operationName = z.enum(operations.map(({ name }) => name));
const path = (expected: string, pattern: RegExp) => z.string().regex(pattern, `expected ${expected}`);
const version = path(
  'path segments without a slash at the ends, such as v1.1',
  /^([^/?#\s]+(\/[^/?#\s]+)*)?$/,
);

const statusExpected = 'expected a status from 400 to 499';
const requiredHeader = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9-]+$/, 'expected the name of a header field'),
  /** All operations if absent. */
  operations: z.array(operationName).optional(),
  status: z.int().min(400, statusExpected).max(499, statusExpected).default(400),
  code: z.string().default('FORMAT_ERROR'),
});

export const profileSchema = z.strictObject({
  /** The path before the segment; part of the gateway's `baseUrl`. */
  basePath: path('a path such as /psd2, without a slash at the end', /^(\/[^/?#\s]+)*$/).default(''),
  segment: version.default('berlingroup'),
  pathVersion: z
    .union([version, z.partialRecord(z.enum(['default', ...operationName.options]), version)])
    .default('v1'),
  requires: z
    .strictObject({
      /** Parameters of every request; `null` accepts any value. */
      query: z.record(z.string(), z.string().nullable()).prefault({}),
      headers: z.array(requiredHeader).prefault([]),
      /** The shortest time between two status reads of a payment. */
      statusReadEveryMs: z.int().min(0).default(0),
    })
    .prefault({}),
  links: z
    .strictObject({
      /** What precedes the payment service in links. Without a slash at its beginning, links have none. */
      before: z.string().default('{origin}{path}/'),
      as: z.enum(['objects', 'strings']).default('objects'),
      /** A query that links of an operation have, and that the bank then requires from requests. */
      queries: z.partialRecord(operationName, z.string()).prefault({}),
      scaRedirect: z.string().optional(),
      /** Links beyond those of the standard's examples. */
      further: z.record(z.string(), z.string()).prefault({}),
      location: z
        .strictObject({
          before: z.string().optional(),
          /** Another spelling of the payment product, which the bank also accepts in paths. */
          product: z.string().optional(),
          as: z.enum(['url', 'json']).default('url'),
        })
        .prefault({}),
    })
    .prefault({}),
  ids: z
    .strictObject({
      payment: z.string().optional(),
      authorisation: z.string().default('sca-{random}'),
      /** Which characters of an id are percent-encoded in links: none, those that a path cannot contain, or all but letters, digits and `-_.!~*'()`. */
      encoded: z.enum(['none', 'necessary', 'all']).default('none'),
    })
    .prefault({}),
  answers: z
    .strictObject({
      initiation: z.literal([200, 201, 202]).default(201),
      /** Of a payment that is not authorised: cancelled without (204) or with a body (200), or a cancellation to authorise (202). */
      cancellation: z.literal([200, 202, 204]).default(204),
      requestId: z.enum(['same', 'own', 'none']).default('same'),
      json: z.string().default('application/json'),
    })
    .prefault({}),
  status: z
    .strictObject({
      /** `accept` follows the product and the request. */
      format: z.enum(['accept', 'json', 'pain.002']).default('accept'),
      charset: z.enum(['utf-8', 'utf-16le', 'utf-16be']).default('utf-8'),
      contentType: z.string().optional(),
      last: z.enum(['ACSC', 'ACCC']).default('ACCC'),
    })
    .prefault({}),
  sca: z
    .strictObject({
      /** The first one applies unless the TPP prefers another. */
      approaches: z
        .array(z.enum(['redirect', 'decoupled', 'embedded']))
        .min(1)
        .prefault(['redirect', 'decoupled', 'embedded']),
      /**
       * The link with which the TPP starts every authorisation; without it, the initiation starts one. A link whose name begins with
       * `update` leads to the payment: the bank then starts the authorisation after a PUT on the payment.
       */
      startLink: z.string().optional(),
      /** The name of the link to the bank's pages: some banks have `scaOAuth`. */
      redirectLink: z.string().default('scaRedirect'),
    })
    .prefault({}),
});

export type BankProfile = z.output<typeof profileSchema>;

/** A profile of which only some settings are given, as in a file. */
export type BankProfileSettings = z.input<typeof profileSchema>;

/** The path before `/{payment-service}` of an operation. */
export const pathBefore = (profile: BankProfile, operation: z.output<typeof operationName>): string =>
  joinPath(profile.basePath, profile.segment, versionOf(profile, operation));

/** The version of an operation, without slashes at its ends. */
export function versionOf({ pathVersion }: BankProfile, operation: z.output<typeof operationName>): string {
  if (typeof pathVersion === 'string') return pathVersion;
  return pathVersion[operation] ?? pathVersion.default ?? 'v1';
}

/** Whether a PUT on the payment starts its authorisation. */
export const startsByUpdate = ({ sca }: BankProfile) => sca.startLink?.startsWith('update') ?? false;

/** Replaces the placeholders of a template. */
export const fill = (template: string, values: Readonly<Record<string, string>>): string =>
  template.replace(/\{(\w+)\}/g, (placeholder, name: string) => values[name] ?? placeholder);
