/** Where the bank says that its resources are. */

/**
 * How hrefs are written; all three occur at real banks.
 * `relative-without-base` leaves out all that stands before `/v1`, as the examples of 1.3.6 do.
 */
export type LinkStyle = 'absolute' | 'relative' | 'relative-without-base';

interface Addressed {
  readonly service: string;
  readonly product: string;
  readonly id: string;
}

/** Makes the hrefs of one bank. */
export interface Links {
  payment(payment: Addressed): string;
  status(payment: Addressed): string;
  /** The list of authorisations, where a new one is started, too. */
  authorisations(payment: Addressed, type: string): string;
  authorisation(payment: Addressed, type: string, id: string): string;
  /** A page for the payer on the bank's web site, which is another origin than its API. */
  scaRedirect(authorisationId: string): string;
}

/** @param before what stands before `/v1`, as the style wants it; asked anew for every link */
export function createLinks(before: () => string, bankName: string): Links {
  const payment = ({ service, product, id }: Addressed) => `${before()}/v1/${service}/${product}/${id}`;
  return {
    payment,
    status: (of) => `${payment(of)}/status`,
    authorisations: (of, type) => `${payment(of)}/${type}`,
    authorisation: (of, type, id) => `${payment(of)}/${type}/${id}`,
    scaRedirect: (id) => `https://sca.${bankName}.example/authorise/${id}`,
  };
}
