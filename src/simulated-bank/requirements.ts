/** What a bank demands of requests beyond the standard, as its profile says. */
import { type HeaderFields, headerValue } from '../pis/headers.ts';
import { BankError } from './bank-error.ts';
import type { BankClock } from './clock.ts';
import type { Links } from './links.ts';
import type { BankProfile } from './profile.ts';
import type { BankRoute } from './routes.ts';

/** Checks one request. @throws BankError with the status and the code of the profile */
export type AssertRequirements = (route: BankRoute, query: string, headers: HeaderFields) => void;

export function createRequirements(
  { requires }: BankProfile,
  links: Pick<Links, 'queryOf'>,
  clock: BankClock,
): AssertRequirements {
  const statusReadAt = new Map<string, number>();

  return (route, query, headers) => {
    for (const { name, operations, status, code } of requires.headers) {
      if (operations && !operations.includes(route.name)) continue;
      if (headerValue(headers, name.toLowerCase())) continue;
      throw new BankError(status, code, `${name} is missing`, { path: name });
    }

    const parameters = query.split('&');
    for (const [name, value] of Object.entries(requires.query)) {
      const isGiven = (one: string) =>
        value === null ? one.startsWith(`${name}=`) : one === `${name}=${value}`;
      if (!parameters.some(isGiven)) throw missingParameter(name);
    }
    const linked = links.queryOf(route.name, route.authorisationId || route.paymentId);
    for (const one of linked.split('&'))
      if (one !== '' && !parameters.includes(one)) throw missingParameter(one.replace(/=.*/, ''));

    if (route.name === 'getPaymentStatus') limitStatusReads(route.paymentId);
  };

  function limitStatusReads(paymentId: string): void {
    const now = clock.now();
    const earlier = statusReadAt.get(paymentId) ?? -Infinity;
    if (now - earlier < requires.statusReadEveryMs)
      throw new BankError(429, 'ACCESS_EXCEEDED', 'The status of this payment is read too often');
    statusReadAt.set(paymentId, now);
  }
}

const missingParameter = (name: string) =>
  new BankError(400, 'FORMAT_ERROR', `The query parameter ${name} is missing or has another value`, {
    path: name,
  });
