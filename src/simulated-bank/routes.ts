/**
 * Maps a request line to an operation.
 *
 * Independent of the gateway's own matcher on purpose: two implementations reveal errors that one would hide.
 */
import { type OperationName, operations } from '../pis/operations.ts';
import { BankError } from './bank-error.ts';

/** An operation and its decoded parameters; empty if the operation has none. */
export interface BankRoute {
  readonly name: OperationName;
  readonly service: string;
  readonly product: string;
  readonly paymentId: string;
  readonly authorisationType: string;
  readonly authorisationId: string;
}

const services = ['payments', 'bulk-payments', 'periodic-payments'];
const authorisationTypes = ['authorisations', 'cancellation-authorisations'];

/**
 * Parses a method and a raw request target.
 *
 * @param prefixOf the path before `/{payment-service}` of an operation, such as `/berlingroup/v1`
 * @returns the route, or the error (404 RESOURCE_UNKNOWN, 405 SERVICE_INVALID)
 */
export function routeOf(
  prefixOf: (operation: OperationName) => string,
  method: string,
  target: string,
): BankRoute | BankError {
  const path = target.replace(/\?.*/s, '');
  const routes = [...new Set(operations.map(({ name }) => prefixOf(name)))].map((prefix) => {
    const route = routeBelow(prefix, method, path);
    return route instanceof BankError || prefixOf(route.name) === prefix ? route : unknown();
  });
  const [first = unknown()] = routes;
  return (
    routes.find((route) => !(route instanceof BankError)) ??
    routes.find((route) => route instanceof BankError && route.status === 405) ??
    first
  );
}

const unknown = () => new BankError(404, 'RESOURCE_UNKNOWN', 'Unknown path');

function routeBelow(prefix: string, method: string, target: string): BankRoute | BankError {
  if (!target.startsWith(`${prefix}/`)) return unknown();
  const segments = decoded(target.slice(prefix.length + 1));
  if (!segments || segments.includes('')) return unknown();

  const [service = '', product = '', paymentId = '', fourth = '', authorisationId = ''] = segments;
  if (!services.includes(service)) return unknown();
  const names = operationsAt(service, fourth, segments.length);
  const name = names[method];
  if (name) {
    const authorisationType = fourth === 'status' ? '' : fourth;
    return { name, service, product, paymentId, authorisationType, authorisationId };
  }
  const allow = Object.keys(names).join(', ');
  if (!allow) return unknown();
  return new BankError(405, 'SERVICE_INVALID', `${method} is not allowed on this path`, {
    headers: [['Allow', allow]],
  });
}

/** The operations at a path with that many segments, by method. */
function operationsAt(service: string, fourth: string, depth: number): Record<string, OperationName> {
  if (depth === 2) return { POST: 'initiatePayment' };
  if (depth === 3) {
    const GET = readings[service] ?? 'getPayment';
    return { GET, DELETE: 'cancelPayment', PUT: 'updatePayment' };
  }
  if (depth === 4 && fourth === 'status') return { GET: 'getPaymentStatus' };
  if (!authorisationTypes.includes(fourth)) return {};
  if (depth === 4) return { POST: 'startAuthorisation', GET: 'listAuthorisations' };
  return depth === 5 ? { GET: 'getAuthorisation', PUT: 'updatePsuData' } : {};
}

const readings: Readonly<Record<string, OperationName>> = {
  'bulk-payments': 'getBulkPayment',
  'periodic-payments': 'getPeriodicPayment',
};

function decoded(path: string): readonly string[] | undefined {
  try {
    return path.split('/').map(decodeURIComponent);
  } catch {
    return undefined;
  }
}
