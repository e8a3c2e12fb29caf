/** The URLs of the bank's resources. */

/**
 * The forms of hrefs; all occur at real banks. `relative-without-segment` omits the standard's segment;
 * `relative-without-base` omits the whole path before `/v1`, as the examples of 1.3.6 do.
 */
export type LinkStyle = 'absolute' | 'relative' | 'relative-without-segment' | 'relative-without-base';

interface Addressed {
  readonly service: string;
  readonly product: string;
  readonly id: string;
}

/** Creates the hrefs of one bank. */
export interface Links {
  payment(payment: Addressed): string;
  status(payment: Addressed): string;
  /** The list of authorisations, where a new one can also be started. */
  authorisations(payment: Addressed, type: string): string;
  authorisation(payment: Addressed, type: string, id: string): string;
  /** A page for the payer on the bank's web site, whose origin differs from the API's. */
  scaRedirect(authorisationId: string): string;
}

/** @param before the URL or path before `/v1`, in the link style; evaluated for every link */
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
