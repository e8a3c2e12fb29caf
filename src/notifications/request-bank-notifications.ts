/**
 * The stage of writes that decides which header fields about notifications the bank gets (`environments.NAME.bankNotifications`): those
 * of the TPP, none, or those with which the bank notifies the gateway.
 */

import { type HeaderFields, headerValue } from '../pis/headers.ts';
import { currentTenantId, identitiesOf } from '../request/identities.ts';
import { isAccepted } from '../request/meaning.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import type { Handler, Stage } from '../request/stage.ts';
import type { PaymentOfTenant } from '../request/statuses.ts';
import type { BankNotificationTokens } from './bank-notification-tokens.ts';
import {
  arePreferencesSigned,
  withoutPreferences,
  withoutSupport,
  withSupport,
} from './notification-fields.ts';

export interface RequestBankNotificationsDependencies {
  /** @param environment the name */
  readonly modeOf: (environment: string) => BankNotificationMode;
  readonly createToken: BankNotificationTokens['create'];
  /** `notifications.publicUrl` */
  readonly publicUrl: string;
  /** Records the payment of a token. Never fails. */
  readonly record: (id: string, payment: PaymentOfTenant) => void;
  /** The key of a payment in the cache. */
  readonly paymentKeyOf: (environmentId: string, paymentId: string) => string;
}

/** `environments.NAME.bankNotifications` */
export type BankNotificationMode = 'off' | 'forward' | 'receive';

/** `LAST` is left out: with it, a bank may send the last status only. */
const preferredContent = 'status=SCA,PROCESS';

export function requestBankNotifications(
  dependencies: RequestBankNotificationsDependencies,
): Stage<RoutedRequest> {
  const { modeOf } = dependencies;
  return (request, next) => {
    const mode = modeOf(request.environment.name);
    if (mode === 'forward' || arePreferencesSigned(request.headers)) return next(request);
    const isAskedFor = headerValue(request.headers, 'tpp-notification-uri') !== undefined;
    request.headers = withoutPreferences(request.headers);
    const response = mode === 'receive' ? askForNotifications(dependencies, request, next) : next(request);
    return response.then(isAskedFor ? withoutNotifications : withoutSupport);
  };
}

/** For a TPP that gets no webhooks: `subscribe` has already removed the fields of requests that it answers itself. */
const withoutNotifications = (response: PisResponse) => withSupport(response, undefined);

/** Asks the bank even if the TPP has not asked for notifications: a read may wait for the status. */
function askForNotifications(
  dependencies: RequestBankNotificationsDependencies,
  request: RoutedRequest,
  next: Handler<RoutedRequest>,
): Promise<PisResponse> {
  const { createToken, publicUrl } = dependencies;
  const { identities, environment } = request;
  const token = identities && createToken(identities.environmentIdOf(environment.name));
  if (!token) return next(request); // the database has been unavailable since the start
  const added: HeaderFields = [
    ['TPP-Notification-URI', `${publicUrl}/${token.text}`],
    ['TPP-Notification-Content-Preferred', preferredContent],
  ];
  request.headers = [...request.headers, ...added];
  return next(request).then((response) => {
    if (isAccepted(response) && response.servedFrom === 'bank' && !isDeclined(response))
      void recordPayment(dependencies, request, response, token.id); // the TPP does not wait for it
    return response;
  });
}

const isDeclined = ({ headers }: PisResponse) =>
  headerValue(headers, 'aspsp-notification-support')?.toLowerCase() === 'false';

async function recordPayment(
  { record, paymentKeyOf }: RequestBankNotificationsDependencies,
  request: RoutedRequest,
  response: PisResponse,
  id: string,
): Promise<void> {
  const { operation, environment } = request;
  const tenantId = currentTenantId(request);
  const environmentId = identitiesOf(request).environmentIdOf(environment.name);
  const paymentId = operation.paymentId ?? response.meaning?.paymentId;
  if (paymentId !== undefined) record(id, { tenantId, paymentKey: paymentKeyOf(environmentId, paymentId) });
}
