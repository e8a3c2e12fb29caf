/** The tables of writes and payments, and of the instances that write them: what must never be lost. */

import type { ColumnTypes } from './column-types.ts';

export const paymentTables = ({ bytes, time }: ColumnTypes): string => `
  CREATE TABLE ledger (
    -- In lower case. First, so that the writes of all tenants with one id are found.
    request_id text NOT NULL,
    tenant text NOT NULL,
    operation text NOT NULL,
    -- Of a request for an existing payment; empty for an initiation: one X-Request-ID may serve a payment and its cancellation.
    payment text NOT NULL,
    step text NOT NULL CHECK (step IN ('claimed', 'sending', 'released', 'answered', 'happened', 'in-doubt')),
    -- A new claim of the same key gets another one.
    attempt text NOT NULL,
    instance text NOT NULL,
    environment text,
    path text NOT NULL,
    fingerprint_key text,
    fingerprint_request text NOT NULL,
    fingerprint_content text NOT NULL,
    -- Whether it is a step of an authorisation before the last one: it executes nothing.
    is_first_factor boolean NOT NULL,
    -- Whether an earlier attempt was sent, and released after the answer of the bank.
    follows_released boolean NOT NULL,
    -- In the answer of the bank, or from an operator.
    payment_id text,
    outcome text,
    -- Why it is in doubt.
    why text,
    -- Another attempt with this key that has reached the bank, too: for operators.
    other_attempt text,
    status integer,
    headers text,
    body ${bytes},
    claimed_at ${time} NOT NULL,
    marked_at ${time},
    -- Until when an answer is awaited.
    listened_until ${time},
    -- When it was released, answered, or resolved as happened.
    ended_at ${time},
    PRIMARY KEY (request_id, tenant, operation, payment)
  );
  -- No index contains the step: so that a mark is an update in place.
  CREATE INDEX ledger_running ON ledger (instance) WHERE ended_at IS NULL;
  CREATE INDEX ledger_in_doubt ON ledger (claimed_at) WHERE why IS NOT NULL;
  CREATE INDEX ledger_claimed_at ON ledger (claimed_at);

  -- Which environment and tenant a payment belongs to. Two banks may give the same id to two payments.
  CREATE TABLE payment (
    payment_id text NOT NULL,
    environment text NOT NULL,
    tenant text NOT NULL,
    -- Service and product of its initiation: payments/sepa-credit-transfers. NULL if payments of several products have this id.
    initiated_as text,
    -- JSON: the ids that the gateway must send in the spelling of the bank.
    bank_ids text,
    -- Whether it is remembered for ever, as a standing order is.
    is_permanent boolean NOT NULL,
    created_at ${time} NOT NULL,
    used_at ${time} NOT NULL,
    PRIMARY KEY (payment_id, environment)
  );
  CREATE INDEX payment_used_at ON payment (used_at) WHERE NOT is_permanent;
  -- For the list of payments, newest first.
  CREATE INDEX payment_created_at ON payment (created_at);
  -- Expressions: a look-up by id and environment, planned before the table has statistics, must not read all payments of the environment.
  CREATE INDEX payment_of_tenant ON payment ((tenant || ''), created_at);
  CREATE INDEX payment_in_environment ON payment ((environment || ''), created_at);

  -- The changes of the transaction status of a payment that answers of the bank have shown.
  CREATE TABLE payment_status (
    payment_id text NOT NULL,
    environment text NOT NULL,
    status text NOT NULL,
    seen_at ${time} NOT NULL,
    -- What has shown it: see SeenBy in payment-history.ts.
    seen_by text NOT NULL,
    -- Of the request that has shown it; NULL for reads of the gateway itself.
    request_id text,
    FOREIGN KEY (payment_id, environment) REFERENCES payment (payment_id, environment) ON DELETE CASCADE
  );
  -- With the time, because lists and inserts look for the newest status of a payment: 77 bytes for each row in PostgreSQL, without it 30.
  CREATE INDEX payment_status_of ON payment_status (payment_id, environment, seen_at);

  CREATE TABLE instance (
    id text PRIMARY KEY,
    seen_at ${time} NOT NULL,
    -- Since when it has reported without a gap.
    reporting_since ${time} NOT NULL,
    -- Since when claims wait for what it remembers, after a failover; NULL when it has written that back.
    awaited_at ${time},
    -- The newest one that its build knows.
    schema_version integer NOT NULL
  );

  -- The last failover that an instance has noticed.
  CREATE TABLE failover (
    only_row boolean PRIMARY KEY CHECK (only_row),
    -- Two failovers may lead to the same timeline.
    id text NOT NULL,
    -- Of PostgreSQL since then.
    timeline text NOT NULL,
    noticed_at ${time} NOT NULL
  );
  INSERT INTO failover (only_row, id, timeline, noticed_at) VALUES (true, 'none', current_timeline(), 0);`;

/** How PostgreSQL stores and vacuums the tables that grow or change most. */
export const storageSettings = `
  ALTER TABLE ledger SET (
    -- Half of each page stays empty for marks, which are then updates in place: they write no index.
    fillfactor = 50,
    -- Within a day, all rows are updated twice and deleted: with the default, a fifth, it would be much larger before space is used again.
    autovacuum_vacuum_scale_factor = 0.05);
  ALTER TABLE payment SET (
    -- Of 400 million rows, 8 million: so many fit in the default memory of a vacuum, which then reads the indexes once.
    autovacuum_vacuum_scale_factor = 0.02,
    -- Most rows never change again: they are frozen in small steps soon after they are inserted, and not all at once after months.
    autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_freeze_min_age = 0);
  ALTER TABLE payment_status SET (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_freeze_min_age = 0);
  -- Each row changes every second, in its own page.
  ALTER TABLE instance_report SET (fillfactor = 20);`;
