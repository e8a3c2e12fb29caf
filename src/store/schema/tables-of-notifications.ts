/** The tables of webhooks, and of the notifications of banks. */

import type { ColumnTypes } from './column-types.ts';

export const notificationTables = ({ time }: ColumnTypes): string => `
  -- Subscriptions to the status of payments (webhooks), one for each tenant and payment, and when work on them is due. Of leased work, the
  -- time is the end of the lease; NULL: there is no such work. Again: it is due at once when the lease ends.
  CREATE TABLE subscription (
    -- Of tenant, environment and payment: a hash.
    id text PRIMARY KEY,
    tenant text NOT NULL,
    environment text NOT NULL,
    payment_id text NOT NULL,
    -- Another one after each change.
    revision text NOT NULL,
    changed_at ${time} NOT NULL,
    -- JSON; encrypted where a key is configured.
    record text NOT NULL,
    read_at ${time},
    read_lease text,
    read_again boolean NOT NULL,
    delivery_at ${time},
    delivery_lease text,
    delivery_again boolean NOT NULL,
    is_failing boolean NOT NULL,
    -- Since when its message is dead.
    dead_since ${time},
    -- Of a message that an endpoint has not accepted: a hash of tenant and origin.
    failed_endpoint text,
    -- Since when it has not accepted it.
    failed_since ${time}
  );
  CREATE INDEX subscription_read_at ON subscription (tenant, environment, read_at);
  CREATE INDEX subscription_payment ON subscription (payment_id);
  CREATE INDEX subscription_delivery_at ON subscription (tenant, delivery_at) WHERE delivery_at IS NOT NULL;
  CREATE INDEX subscription_failing ON subscription (tenant) WHERE is_failing;
  CREATE INDEX subscription_dead_since ON subscription (tenant, dead_since) WHERE dead_since IS NOT NULL;
  CREATE INDEX subscription_endpoint ON subscription (failed_endpoint, delivery_at) WHERE failed_endpoint IS NOT NULL;

  -- Messages of webhooks, for operators: the one that is due is in the record of its subscription.
  CREATE TABLE webhook_message (
    -- webhook-id.
    id text PRIMARY KEY,
    -- The subscription may have ended.
    subscription text NOT NULL,
    tenant text NOT NULL,
    environment text NOT NULL,
    payment_id text NOT NULL,
    client text NOT NULL,
    -- The origin of the URL.
    endpoint text NOT NULL,
    sequence ${time} NOT NULL,
    transaction_status text NOT NULL,
    -- Of the authorisation that the message is about.
    sca_status text,
    -- See MessageState in webhook-messages.ts.
    state text NOT NULL,
    attempts integer NOT NULL,
    -- Why the last attempt has failed.
    why text,
    created_at ${time} NOT NULL,
    changed_at ${time} NOT NULL
  );
  CREATE INDEX webhook_message_payment ON webhook_message (payment_id, environment, sequence);
  CREATE INDEX webhook_message_created_at ON webhook_message (created_at);

  -- The payments of the tokens at which banks notify the gateway.
  CREATE TABLE notified_payment (
    token_id text PRIMARY KEY,
    -- NULL: a notification has arrived before the payment was stored.
    tenant text,
    -- The key of the payment in the cache.
    payment_key text,
    -- Whether a notification has arrived before the payment was stored.
    is_early boolean NOT NULL,
    kept_until ${time} NOT NULL
  );
  CREATE INDEX notified_payment_kept_until ON notified_payment (kept_until);

  CREATE TABLE secret (
    name text PRIMARY KEY,
    -- Encrypted where a key is configured.
    value text NOT NULL
  );`;
