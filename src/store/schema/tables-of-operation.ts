/** The tables of the fleet, of operators and of identities. */

import type { ColumnTypes } from './column-types.ts';

export const operationTables = ({ time }: ColumnTypes): string => `
  -- What each instance reported last, for operators. Unlike \`instance\`, nothing depends on it, and it stays for an hour after the end.
  CREATE TABLE instance_report (
    id text PRIMARY KEY,
    started_at ${time} NOT NULL,
    reported_at ${time} NOT NULL,
    -- When it has announced its end.
    stopped_at ${time},
    version text NOT NULL,
    -- By how much its clock is ahead of that of the database.
    clock_difference_ms ${time} NOT NULL,
    -- SHA-256, without secrets and what may differ between instances.
    configuration_hash text NOT NULL,
    -- JSON: readiness, figures, circuits, queues.
    report text NOT NULL
  );

  -- The counts of each second in which an instance had requests: of the last minutes.
  CREATE TABLE instance_second (
    instance text NOT NULL,
    -- Seconds since 1970, on the clock of the instance.
    second ${time} NOT NULL,
    inserted_at ${time} NOT NULL,
    -- JSON.
    counts text NOT NULL,
    PRIMARY KEY (instance, second)
  );
  CREATE INDEX instance_second_inserted_at ON instance_second (inserted_at);

  -- The last request that all instances load their configuration again, if not all of them have answered.
  CREATE TABLE reload_request (
    only_row boolean PRIMARY KEY CHECK (only_row),
    id text NOT NULL,
    requested_at ${time} NOT NULL,
    who text NOT NULL,
    reason text
  );

  -- What changed on any instance, and who asked for it.
  CREATE TABLE timeline (
    -- Several instances may notice one event: they give it the same id.
    id text PRIMARY KEY,
    happened_at ${time} NOT NULL,
    kind text NOT NULL,
    instance text NOT NULL,
    who text,
    environment text,
    lane text,
    text text NOT NULL,
    -- JSON.
    details text NOT NULL
  );
  CREATE INDEX timeline_happened_at ON timeline (happened_at);

  -- Sessions of operators, and sign-ins that have begun.
  CREATE TABLE operator_session (
    -- Of the id in the cookie.
    key_hash text PRIMARY KEY,
    -- JSON; encrypted where a key is configured.
    record text NOT NULL,
    expires_at ${time} NOT NULL
  );
  CREATE INDEX operator_session_expires_at ON operator_session (expires_at);

  CREATE TABLE active_environment (
    only_row boolean PRIMARY KEY CHECK (only_row),
    environment text NOT NULL,
    version ${time} NOT NULL
  );

  -- Circuits that operators keep open or closed.
  CREATE TABLE hold (
    environment text NOT NULL,
    lane text NOT NULL,
    held_as text NOT NULL CHECK (held_as IN ('open', 'closed')),
    reason text NOT NULL,
    until_ms ${time} NOT NULL,
    PRIMARY KEY (environment, lane)
  );

  -- The names that a tenant has and has had. Its id, which all rows contain, is the first one.
  CREATE TABLE tenant_name (
    name text PRIMARY KEY,
    tenant text NOT NULL,
    named_at ${time} NOT NULL
  );

  -- The tenant of each API key and certificate that was ever configured: its SHA-256, as in the configuration.
  CREATE TABLE credential (
    hash text PRIMARY KEY,
    tenant text NOT NULL
  );

  -- Increased when a credential gets another tenant, or is new: what an instance knew before is out of date.
  CREATE TABLE identity_revision (
    only_row boolean PRIMARY KEY CHECK (only_row),
    revision ${time} NOT NULL
  );
  INSERT INTO identity_revision (only_row, revision) VALUES (true, 0);

  -- As tenant_name.
  CREATE TABLE environment_name (
    name text PRIMARY KEY,
    environment text NOT NULL,
    named_at ${time} NOT NULL
  );

  -- Origin and base path of the bank, of each environment that a write was sent to.
  CREATE TABLE environment_address (
    environment text PRIMARY KEY,
    address text NOT NULL
  );

  -- Each record has the hash of the one before it.
  CREATE TABLE audit (
    number ${time} PRIMARY KEY,
    -- ISO 8601, UTC.
    recorded_at text NOT NULL,
    who text NOT NULL,
    action text NOT NULL,
    outcome text NOT NULL,
    -- JSON, as it was hashed.
    details text NOT NULL,
    previous text NOT NULL,
    hash text NOT NULL,
    -- A copy from the details, for the index.
    payment_id text
  );
  CREATE INDEX audit_payment ON audit (payment_id) WHERE payment_id IS NOT NULL;`;
