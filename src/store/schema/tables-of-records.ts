/** The tables of what the gateway reports: records of requests, figures, and the report of the contract guard. */

import type { ColumnTypes } from './column-types.ts';

export const recordTables = ({ time }: ColumnTypes): string => `
  CREATE TABLE request_record (
    instance text NOT NULL,
    -- Of the record on this instance.
    number ${time} NOT NULL,
    -- Milliseconds since 1970.
    received_at ${time} NOT NULL,
    request_id text NOT NULL,
    operation text,
    client text,
    -- An id.
    tenant text,
    environment text,
    -- Service and product, such as payments/sepa-credit-transfers.
    product text,
    -- Of the path, or in the answer to an initiation.
    payment_id text,
    -- Of the HTTP response.
    status integer NOT NULL,
    -- succeeded, refused-by-bank, failed, refused or in-doubt.
    outcome text NOT NULL,
    -- The code of tppMessages, the code of the gateway, and its text.
    bank_error text,
    error text,
    why text,
    -- Tenths of a millisecond.
    duration_tenths integer,
    served_from text,
    -- JSON.
    events text NOT NULL,
    PRIMARY KEY (instance, number)
  );
  -- With the tenant, so that a search of one tenant reads no rows of others with the same id. Last, because not every search has one.
  CREATE INDEX request_record_request_id ON request_record (lower(request_id), received_at, tenant);
  CREATE INDEX request_record_payment ON request_record (payment_id, received_at, tenant) WHERE payment_id IS NOT NULL;
  -- For the history of a payment: the same condition as in payment-history.ts.
  CREATE INDEX request_record_remarkable ON request_record (payment_id, tenant, received_at)
    WHERE (outcome <> 'succeeded'
      OR operation IN ('initiatePayment', 'startAuthorisation', 'updatePsuData', 'updatePayment', 'cancelPayment'));
  CREATE INDEX request_record_received_at ON request_record (received_at);
  CREATE INDEX request_record_tenant ON request_record (tenant, received_at);

  -- How much of the records each tenant uses, in each period of the retention, by the requests of each instance.
  CREATE TABLE record_share (
    -- Its number since 1970: see tenant-shares.ts.
    period ${time} NOT NULL,
    -- As in the records.
    tenant text NOT NULL,
    instance text NOT NULL,
    bytes ${time} NOT NULL,
    -- Requests of which no record is stored.
    not_stored ${time} NOT NULL,
    PRIMARY KEY (period, tenant, instance)
  );

  -- The requests of an instance in each minute: of all, also of those without a record.
  CREATE TABLE minute_figure (
    -- Its beginning: seconds since 1970.
    minute ${time} NOT NULL,
    instance text NOT NULL,
    requests integer NOT NULL,
    refused integer NOT NULL,
    failed integer NOT NULL,
    -- Status reads, by how they were answered.
    hit integer NOT NULL,
    stale integer NOT NULL,
    shared integer NOT NULL,
    miss integer NOT NULL,
    bypass integer NOT NULL,
    -- JSON: pairs of a bucket of the duration and the number of requests in it.
    durations text NOT NULL,
    PRIMARY KEY (minute, instance)
  );

  -- The initiations of an instance in each minute, by result: see InitiationCount in initiations.ts.
  CREATE TABLE minute_initiation (
    minute ${time} NOT NULL,
    instance text NOT NULL,
    -- Empty: not known.
    environment text NOT NULL,
    product text NOT NULL,
    result text NOT NULL,
    requests integer NOT NULL,
    -- The sum of their durations at the bank: milliseconds.
    bank_ms ${time} NOT NULL,
    PRIMARY KEY (minute, instance, environment, product, result)
  );

  -- The errors of an instance in each minute. Empty texts: not known, or none.
  CREATE TABLE minute_error (
    minute ${time} NOT NULL,
    instance text NOT NULL,
    code text NOT NULL,
    bank_status text NOT NULL,
    bank_error text NOT NULL,
    client text NOT NULL,
    tenant text NOT NULL,
    operation text NOT NULL,
    environment text NOT NULL,
    requests integer NOT NULL,
    -- Of the last one: when it ended, in milliseconds since 1970, and its X-Request-ID.
    last_at ${time} NOT NULL,
    last_request_id text NOT NULL,
    PRIMARY KEY (minute, instance, code, bank_status, bank_error, client, tenant, operation, environment)
  );

  -- What the contract guard has counted: the totals of each instance on each day, which replace each other while the day lasts.
  CREATE TABLE contract_deviation (
    -- Of UTC, when it was counted: days since 1970.
    day integer NOT NULL,
    instance text NOT NULL,
    -- Of the row on this instance.
    number integer NOT NULL,
    -- Of the messages.
    environment text NOT NULL,
    -- The hash of the contract that they were checked against, and whether it is that of their environment.
    contract text NOT NULL,
    is_own boolean NOT NULL,
    -- request or response.
    direction text NOT NULL,
    operation text NOT NULL,
    -- In the schema.
    path text NOT NULL,
    rule text NOT NULL,
    level text NOT NULL,
    effect text NOT NULL,
    -- The hash of the contract of their environment, if both contracts refuse them; otherwise NULL.
    also_refused_by text,
    client text NOT NULL,
    messages integer NOT NULL,
    -- Of the first and the last message: when it was received, in milliseconds since 1970, and the X-Request-ID of the last one.
    first_at ${time} NOT NULL,
    last_at ${time} NOT NULL,
    last_request_id text NOT NULL,
    PRIMARY KEY (day, instance, number)
  );

  -- Messages that were checked, with or without a deviation. Columns as above.
  CREATE TABLE contract_check (
    day integer NOT NULL,
    instance text NOT NULL,
    number integer NOT NULL,
    environment text NOT NULL,
    contract text NOT NULL,
    is_own boolean NOT NULL,
    direction text NOT NULL,
    operation text NOT NULL,
    client text NOT NULL,
    messages integer NOT NULL,
    first_at ${time} NOT NULL,
    PRIMARY KEY (day, instance, number)
  );

  -- Messages that were not checked, and deviations that were not counted. Columns as above.
  CREATE TABLE contract_skip (
    day integer NOT NULL,
    instance text NOT NULL,
    number integer NOT NULL,
    environment text NOT NULL,
    direction text NOT NULL,
    -- sampled-out, shed, failed or not-counted.
    reason text NOT NULL,
    messages integer NOT NULL,
    PRIMARY KEY (day, instance, number)
  );

  -- How many answers of an operation each instance has checked. Ten of all instances are its baseline: what the bank has always done.
  CREATE TABLE contract_baseline (
    environment text NOT NULL,
    contract text NOT NULL,
    operation text NOT NULL,
    instance text NOT NULL,
    -- At most ten.
    answers integer NOT NULL,
    -- Written at least once a day while there are answers.
    seen_at ${time} NOT NULL,
    PRIMARY KEY (environment, contract, operation, instance)
  );

  -- The kinds of deviations that answers have had.
  CREATE TABLE contract_kind (
    environment text NOT NULL,
    contract text NOT NULL,
    operation text NOT NULL,
    path text NOT NULL,
    rule text NOT NULL,
    -- Of the first deviation.
    level text NOT NULL,
    effect text NOT NULL,
    -- The instance that has found it first, and when: milliseconds since 1970.
    found_by text NOT NULL,
    found_at ${time} NOT NULL,
    -- Whether the operation had a baseline then: a change of the bank, which this instance announces.
    is_change boolean NOT NULL,
    -- Written at least once a day while there are such answers.
    seen_at ${time} NOT NULL,
    PRIMARY KEY (environment, contract, operation, path, rule)
  );`;
