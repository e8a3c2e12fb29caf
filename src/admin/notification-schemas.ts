/** Schemas of the admin API's JSON responses about webhooks (response-schemas.ts). */

import { z } from 'zod';
import { subscriptionStates } from '../notifications/manage-subscriptions.ts';
import { notificationContents } from '../notifications/notification-content.ts';
import { dateTime, listOf } from './response-schemas.ts';

export const notification = z.object({
  id: z.string(),
  state: z
    .enum(subscriptionStates)
    .describe(
      'undelivered: it has a message that the endpoint has not accepted yet. dead: that message was given up. failing: the last three or more reads of the status have failed, and it is read again less and less often.',
    ),
  tenant: z.string(),
  environment: z.string(),
  client: z.string(),
  paymentService: z.string(),
  paymentProduct: z.string(),
  paymentId: z.string(),
  url: z.string().describe('Without the values of its query, which may be secret.'),
  content: z.enum(notificationContents),
  since: dateTime,
  until: dateTime.describe('When the subscription ends, whatever the status.'),
  sequence: z.int().describe('The number of its last message.'),
  transactionStatus: z.string().nullable().describe('The last status that was read.'),
  failedReads: z.int().describe('The failed reads of the status since the last successful one.'),
  readError: z.string().nullable().describe('Why the last read has failed.'),
  message: z
    .object({
      webhookId: z.string(),
      sequence: z.int(),
      transactionStatus: z.string(),
      final: z.boolean(),
      authorisationId: z.string().nullable(),
      scaStatus: z.string().nullable(),
      since: dateTime,
      failedAttempts: z.int(),
      why: z.string().nullable().describe('Why the last attempt failed.'),
      deadSince: dateTime.nullable(),
    })
    .nullable(),
});
export const notifications = listOf(notification);

export const notificationSummary = z.object({
  clients: listOf(z.string()).describe('The clients that may have webhooks.'),
  tenants: listOf(
    z.object({
      tenant: z.string(),
      active: z.int().describe('Subscriptions whose status is read.'),
      overdue: z.int().describe('Of these, those whose read is due.'),
      failing: z.int().describe('Of the active ones, those whose last three or more reads have failed.'),
      undelivered: z.int().describe('Messages that the endpoint has not accepted yet.'),
      dead: z.int().describe('Messages that were given up.'),
    }),
  ),
  endpoints: listOf(
    z.object({
      tenant: z.string(),
      endpoint: z.string().describe('The origin of the URLs.'),
      delivered: z.int(),
      undelivered: z.int(),
      dead: z.int(),
      failedAttempts: z.int(),
      lastDeliveredAt: dateTime.nullable(),
    }),
  ).describe('The messages of the last day, by the endpoint that they are for.'),
  pollLimits: listOf(z.object({ environment: z.string(), perSecond: z.number() })).describe(
    'Calls per second that all polls of an environment may use together (notifications.share).',
  ),
});

export const resentNotifications = z.object({ resent: z.int().describe('How many are due now.') });
