/** notifications: waiting for a change of a payment's status, webhooks, and the polls of the gateway for them. */

import { z } from 'zod';
import { isNetwork } from '../network-list.ts';
import { duration, percent } from '../units.ts';
import { count, host, isLoopback, port, webAddress } from '../values.ts';
import { listenerTls } from './listener-tls.ts';

export const notifications = z
  .strictObject({
    maxWait: duration('55s', { min: '0ms', max: '10min' }).describe(
      'The maximum time that a status read with `Prefer: wait` waits for a change; longer waits are shortened to it. Shorter than the timeout of any proxy in front. 0s: reads do not wait.',
    ),
    maxWaiting: count(1000).describe(
      'The maximum number of waiting status reads and event streams of one tenant on one instance; further ones are refused with OVERLOADED. All tenants together may use half of the connections.',
    ),
    maxInterval: duration('1h', { min: '1s', max: '1d' }).describe(
      'The maximum interval between two polls of a status that somebody waits for.',
    ),
    allowPrivate: z
      .array(z.string().refine(isNetwork, 'expected an IP address, or a network such as 10.0.0.0/8'))
      .default([])
      .describe(
        'Addresses and networks that webhooks may be sent to although they are private, such as 10.20.0.0/16. An address in `clients[].notifications.urls` needs no entry.',
      ),
    timeout: duration('15s', { min: '1s', max: '1min' }).describe(
      'The maximum time for one attempt to deliver a webhook, from the name of the endpoint to its response.',
    ),
    retryFor: duration('72h', { min: '1min', max: '30d' }).describe(
      'How long an undelivered webhook is sent again; then it is a dead letter.',
    ),
    keepFor: duration('30d', { min: '1h', max: '400d' }).describe(
      'The maximum time for which the status of a payment is sent, and for which dead letters are stored.',
    ),
    maxSubscriptions: count(100_000).describe(
      'The maximum number of subscriptions of webhooks of one tenant; undelivered messages and dead letters count as well. Beyond it, the gateway answers ASPSP-Notification-Support: false.',
    ),
    listen: z
      .strictObject({
        host: host('127.0.0.1').describe(
          'The address to listen on; 0.0.0.0 and :: mean all addresses of the host.',
        ),
        port: port(8081).describe(
          'The port to listen on; 0 selects a free port. Unless set, it is the next free one if another listener would have the same address.',
        ),
        tls: listenerTls({
          certificate: 'The server certificate of the listener with its chain, in PEM format.',
          clientCertificate: 'nothing',
        })
          .optional()
          .describe('TLS settings of the listener; without them, it uses plain HTTP.'),
      })
      .optional()
      .meta({ defaultText: 'none' })
      .describe(
        'The listener for the notifications of banks (`environments.NAME.bankNotifications: receive`). It accepts only POST, at URIs that the gateway has sent to the bank.',
      ),
    publicUrl: webAddress()
      .refine(
        (url) => url.startsWith('https:') || isLoopback(new URL(url).hostname),
        'http: is allowed on loopback only, because the URI is a secret; use https:',
      )
      .optional()
      .meta({ defaultText: 'none' })
      .describe(
        'The URL under which banks reach notifications.listen. Its host must belong to a domain in the client certificate (QWAC). The gateway appends a token for each payment.',
      ),
    share: percent('20%', { min: '1%' }).describe(
      'The part of the rate of an environment that all polls together may use.',
    ),
  })
  .prefault({})
  .describe(
    'Waiting for a change of the status of a payment, and webhooks. The gateway polls the status for both.',
  );
