/** Looks up the requests of a TPP by their X-Request-ID, in the records of all instances and in the ledger. */

import type { InitiationOutcome, ReadInitiation } from '../idempotency/initiation-outcome.ts';
import { GatewayError, stateUnavailable } from '../request/errors.ts';
import type { Identities } from '../request/identities.ts';
import type { Client } from '../request/messages.ts';
import type { RequestSearch } from '../telemetry/request-search.ts';
import { describeRequest } from './describe-request.ts';
import type { LookUpLimits } from './look-up-limits.ts';
import type { LookUpReport, ReportedInitiation } from './look-up-report.ts';

/**
 * The requests of the client's tenant, in environments that the client may use.
 *
 * @throws GatewayError REQUEST_UNKNOWN if there is none, whether another tenant has used the id or not; QUOTA_EXCEEDED;
 *   STATE_UNAVAILABLE
 */
type LookUp = (client: Client, requestId: string) => Promise<LookUpReport>;

interface LookUpDependencies {
  /** `undefined` while they are not known. */
  readonly identities: () => Identities | undefined;
  readonly search: Pick<RequestSearch, 'findOwn'>;
  readonly readInitiation: ReadInitiation;
  readonly limits: LookUpLimits;
  /** Whether an instance has ended without announcing it, or cannot be reached. */
  readonly isInstanceLost: () => boolean;
  /** `listen.errorPageUrl` */
  readonly errorPageUrl: string | null;
}

const maxRequests = 50;

export function createLookUp({
  identities,
  search,
  readInitiation,
  limits,
  isInstanceLost,
  errorPageUrl,
}: LookUpDependencies): LookUp {
  async function read(client: Client, requestId: string, known: Identities): Promise<LookUpReport> {
    const mayUse = (environment: string | null) =>
      environment === null || client.environments.includes(environment);
    const tenantId = known.tenantIdOf(client.tenant);
    const outcome = await readInitiation(tenantId, requestId);
    const found = await search.findOwn(tenantId, requestId, maxRequests);

    const reported = outcome && reportInitiation(outcome, known);
    const initiation = reported && mayUse(reported.environment) ? reported : null;
    const paymentId = initiation?.paymentId ?? null;
    const requests = found.requests
      .filter(({ environment }) => mayUse(environment))
      .map((request) => describeRequest(request, { paymentId, errorPageUrl }));
    const missing = [
      ...(found.isComplete ? [] : ['Only the newest requests are listed.']),
      ...(found.notStored > 0 ? ['Of some of your requests in this time, no record was stored.'] : []),
      ...(isInstanceLost() ? [instanceLost] : []),
    ];
    if (!initiation && requests.length === 0) throw requestUnknown(missing);
    return { xRequestId: requestId, initiation, requests, complete: missing.length === 0, missing };
  }

  return (client, requestId) => {
    const known = identities();
    if (!known) return Promise.reject(stateUnavailable());
    return limits.run(known.tenantIdOf(client.tenant), () => read(client, requestId, known));
  };
}

const instanceLost =
  'An instance of the gateway is unreachable, or was lost in the last hour: the last requests that it served may be missing.';

/** The text depends on nothing of other tenants. */
function requestUnknown(missing: readonly string[]): GatewayError {
  const text =
    'No request with this X-Request-ID is recorded for you. The gateway and the bank may have received it nevertheless: send a payment ' +
    'again only with the same X-Request-ID.';
  return new GatewayError('REQUEST_UNKNOWN', [text, ...missing].join(' '));
}

function reportInitiation(outcome: InitiationOutcome, { environmentNameOf }: Identities): ReportedInitiation {
  const { state, environment, status = null, paymentId = null } = outcome;
  return {
    state,
    environment: environment === undefined ? null : environmentNameOf(environment),
    status,
    paymentId,
    advice: adviceFor(outcome),
    rules,
  };
}

const sameResponse = 'A repeat with the same X-Request-ID gets the same response again.';

const rules = 'https://github.com/penstock-gateway/penstock/blob/main/docs/callers/submit-payments.md';

function adviceFor({ state, paymentId }: InitiationOutcome): string {
  switch (state) {
    case 'in-progress':
      return 'The initiation is in progress: repeat it with the same X-Request-ID to get its response.';
    case 'not-sent':
      return 'Nothing was sent to the bank so far: repeat the request with the same X-Request-ID.';
    case 'answered':
      if (paymentId !== undefined)
        return `The bank has answered with this payment: read its status. ${sameResponse}`;
      return `The bank has refused the payment: a corrected one gets a new X-Request-ID. ${sameResponse}`;
    case 'in-doubt':
      return (
        'It is unknown whether the bank has made the payment. Do not initiate it again with another X-Request-ID: that could pay twice. ' +
        'Repeat the same request later with the same X-Request-ID; the operators of the gateway ask the bank.'
      );
    case 'executed':
      return (
        'The bank has made the payment, and its response was lost. Do not initiate it again: ' +
        (paymentId === undefined ? 'ask the operators of the gateway for its paymentId.' : 'read its status.')
      );
  }
}
