/** `penstock notifications`: lists subscriptions of webhooks, sends their messages again, and ends subscriptions. */

import { z } from 'zod';
import { type AdminClient, pathWithQuery } from './admin-client.ts';
import { parseBody, successBody } from './admin-response.ts';
import { type Options, reasonIn } from './command.ts';
import { UsageError } from './command-error.ts';
import { type CommandOutput, success } from './command-output.ts';

/**
 * Selects what the arguments ask for: without any, lists the subscriptions that match the filter; with an id, one subscription;
 * with an action, changes what the first argument names.
 *
 * @param subscription  the id of a subscription, or `all`
 * @param action        `resend` or `end`
 */
export function notifications(
  call: AdminClient,
  options: Options,
  subscription?: string,
  action?: string,
): Promise<CommandOutput> {
  const { tenant, payment, state } = options;
  if (subscription === undefined) return listSubscriptions(call, { tenant, payment, state });
  if (payment !== undefined || state !== undefined)
    throw new UsageError('--payment and --state select from the list: remove them, or the id.');
  if (subscription === 'all') {
    if (action !== 'resend')
      throw new UsageError('All dead letters can be sent again: notifications all resend --reason TEXT');
    return resendAll(call, tenant, reasonIn(options));
  }
  if (tenant !== undefined) throw new UsageError('--tenant selects from the list: remove it, or the id.');
  if (action === undefined) return showSubscription(call, subscription);
  return changeSubscription(call, subscription, action, reasonIn(options));
}

const subscriptionBody = z.object({
  id: z.string(),
  state: z.string(),
  tenant: z.string(),
  environment: z.string(),
  client: z.string(),
  paymentId: z.string(),
  url: z.string(),
  content: z.string(),
  since: z.string(),
  until: z.string(),
  transactionStatus: z.string().nullable(),
  failedReads: z.number(),
  readError: z.string().nullable(),
  message: z
    .object({
      webhookId: z.string(),
      sequence: z.number(),
      transactionStatus: z.string(),
      final: z.boolean(),
      scaStatus: z.string().nullable(),
      since: z.string(),
      failedAttempts: z.number(),
      why: z.string().nullable(),
      deadSince: z.string().nullable(),
    })
    .nullable(),
});
const subscriptionsBody = z.array(subscriptionBody);

type ListedSubscription = z.output<typeof subscriptionBody>;

/** As many of each tenant and state as the admin API lists. */
const maxListed = 200;

async function listSubscriptions(
  call: AdminClient,
  filter: Readonly<Record<string, string | undefined>>,
): Promise<CommandOutput> {
  const path = pathWithQuery('/notifications', filter);
  const found = parseBody(subscriptionsBody, successBody(await call('GET', path)));
  if (found.length === 0) return success([noneFound(filter)], found);
  const lines = found.flatMap(linesOf);
  if (found.length >= maxListed)
    lines.push(
      `At most ${maxListed} of each tenant and state are listed; the metric penstock_subscriptions counts all of them.`,
    );
  return success(lines, found);
}

const noneFound = (filter: Readonly<Record<string, string | undefined>>) =>
  Object.values(filter).every((value) => value === undefined)
    ? 'There is no subscription.'
    : 'No subscription matches.';

function linesOf(subscription: ListedSubscription): readonly string[] {
  const { id, state, tenant, environment, client, paymentId, url, content, transactionStatus } = subscription;
  return [
    `${id}  ${state}`,
    `  payment ${paymentId} of ${tenant} in ${environment}, ${transactionStatus ?? 'status not yet read'}`,
    `  ${content} for ${client} to ${url}, since ${subscription.since}, until ${subscription.until}`,
    ...(subscription.message ? [`  ${messageText(subscription.message)}`] : []),
    ...(state === 'failing'
      ? [`  The last ${subscription.failedReads} reads of the status have failed: ${subscription.readError}.`]
      : []),
  ];
}

/** `message 3, ACSC (final), SCA finalised, webhook-id <id>, since 2026-01-31T12:00:00.000Z, 2 failed attempts: <why>` */
function messageText({
  webhookId,
  sequence,
  transactionStatus,
  final,
  scaStatus,
  since,
  failedAttempts,
  why,
  deadSince,
}: NonNullable<ListedSubscription['message']>): string {
  const status = final ? `${transactionStatus} (final)` : transactionStatus;
  const sca = scaStatus === null ? '' : `, SCA ${scaStatus}`;
  const attempts = failedAttempts === 1 ? '1 failed attempt' : `${failedAttempts} failed attempts`;
  const dead = deadSince === null ? '' : `, given up at ${deadSince}`;
  return `message ${sequence}, ${status}${sca}, webhook-id ${webhookId}, since ${since}, ${attempts}${dead}${why === null ? '' : `: ${why}`}`;
}

async function showSubscription(call: AdminClient, id: string): Promise<CommandOutput> {
  const found = parseBody(subscriptionBody, successBody(await call('GET', pathOf(id))));
  return success(linesOf(found), found);
}

async function changeSubscription(
  call: AdminClient,
  id: string,
  action: string,
  reason: string,
): Promise<CommandOutput> {
  successBody(await call('POST', pathOf(id), { action, reason }));
  return success([action === 'resend' ? resentText : endedText], { id, action });
}

const resentText = 'The message is due now, under its webhook-id.';
const endedText = 'Ended: no message about this payment follows, unless the TPP subscribes again.';

const pathOf = (id: string) => `/notifications/${encodeURIComponent(id)}`;

const resentBody = z.object({ resent: z.number() });

async function resendAll(
  call: AdminClient,
  tenant: string | undefined,
  reason: string,
): Promise<CommandOutput> {
  const body = { action: 'resend', ...(tenant !== undefined && { tenant }), reason };
  const result = parseBody(resentBody, successBody(await call('POST', '/notifications', body)));
  return success([`Dead letters that are due now: ${result.resent}.`], result);
}
