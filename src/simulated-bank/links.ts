/** The URLs of the bank's resources, in the forms of its profile. */
import { createHash } from 'node:crypto';
import type { OperationName } from '../pis/operations.ts';
import type { Payment, PaymentAuthorisation } from './payment-lifecycle.ts';
import { type BankProfile, fill, pathBefore, versionOf } from './profile.ts';

/**
 * The usual forms of hrefs; all occur at real banks. `relative-without-segment` omits the standard's segment;
 * `relative-without-base` omits the whole path before `/v1`, as the examples of 1.3.6 do.
 */
export type LinkStyle = 'absolute' | 'relative' | 'relative-without-segment' | 'relative-without-base';

/** The template of `links.before` for each of the usual forms. */
export const linksBefore = (style: LinkStyle, basePath: string): string =>
  ({
    absolute: '{origin}{path}/',
    relative: '{path}/',
    'relative-without-segment': `${basePath}/{version}/`,
    'relative-without-base': '/{version}/',
  })[style];

type Addressed = Pick<Payment, 'service' | 'product' | 'id'>;

/** Creates the hrefs of one bank. */
export interface Links {
  payment(payment: Addressed): string;
  status(payment: Addressed): string;
  /** The list of authorisations, where a new one can also be started. */
  authorisations(payment: Addressed, type: string): string;
  authorisation(payment: Addressed, type: string, id: string): string;
  /** An authorisation, to which the TPP sends the payer's data. */
  update(payment: Addressed, type: string, id: string): string;
  /** A page for the payer on the bank's web site, whose origin differs from the API's. */
  scaRedirect(authorisation: Pick<PaymentAuthorisation, 'id'>): string;
  /** The links that only this bank has. */
  further(payment: Addressed): Readonly<Record<string, string>>;
  /** The value of `Location`. */
  location(payment: Addressed): string;
  /** The value of `_links`. */
  write(hrefs: Readonly<Record<string, string>>): Readonly<Record<string, unknown>>;
  /** The query that the links of an operation on this resource have; empty if none. */
  queryOf(operation: OperationName, id: string): string;
}

/** @param origin evaluated for every link */
export function createLinks(profile: BankProfile, origin: () => string, bankName: string): Links {
  const { links, ids } = profile;
  const encode = encoders[ids.encoded];
  const queryOf = (operation: OperationName, id: string) =>
    fill(links.queries[operation] ?? '', { hash: hashOf(id) });
  const link = (operation: OperationName, parts: readonly string[], id: string, before = links.before) => {
    const [path, version] = [pathBefore(profile, operation), versionOf(profile, operation)];
    const start = fill(before, { origin: origin(), path, version });
    const query = queryOf(operation, id);
    return `${start}${parts.join('/')}${query && `?${query}`}`;
  };
  const payment = ({ service, product, id }: Addressed, before?: string) =>
    link('getPayment', [service, product, encode(id)], id, before);

  const authorisation =
    (operation: OperationName): Links['authorisation'] =>
    ({ service, product, id }, type, authorisationId) =>
      link(operation, [service, product, encode(id), type, encode(authorisationId)], authorisationId);

  return {
    payment: (of) => payment(of),
    status: ({ service, product, id }) =>
      link('getPaymentStatus', [service, product, encode(id), 'status'], id),
    authorisations: ({ service, product, id }, type) =>
      link('startAuthorisation', [service, product, encode(id), type], id),
    authorisation: authorisation('getAuthorisation'),
    update: authorisation('updatePsuData'),
    scaRedirect: ({ id }) =>
      fill(links.scaRedirect ?? `https://sca.${bankName}.example/authorise/{authorisation}`, {
        authorisation: encode(id),
        origin: origin(),
      }),
    further: (of) =>
      Object.fromEntries(
        Object.entries(links.further).map(([name, template]) => [
          name,
          fill(template, { payment: payment(of), origin: origin() }),
        ]),
      ),
    location: (of) => {
      const { product = of.product, before, as } = links.location;
      const href = payment({ ...of, product }, before);
      return as === 'json' ? JSON.stringify({ href }) : href;
    },
    write: (hrefs) =>
      links.as === 'strings'
        ? hrefs
        : Object.fromEntries(Object.entries(hrefs).map(([name, href]) => [name, { href }])),
    queryOf,
  };
}

const encoders: Readonly<Record<BankProfile['ids']['encoded'], (id: string) => string>> = {
  none: (id) => id,
  necessary: (id) => id.replace(/[^A-Za-z0-9._~!$&'()*+,;=:@-]/gu, encodeURIComponent),
  all: encodeURIComponent,
};

const hashOf = (id: string) => createHash('sha256').update(id).digest('hex').slice(0, 6).toUpperCase();
