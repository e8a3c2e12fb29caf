/** An active environment and an audit log in a database in memory whose statements a test can let fail. */

import { createActiveEnvironment } from '../../src/environments/active-environment.ts';
import { createAuditLog } from '../../src/environments/audit-log.ts';
import type { PubSub } from '../../src/state/ports.ts';
import { createActiveEnvironmentTable } from '../../src/store/active-environment.ts';
import { createAuditTable } from '../../src/store/audit.ts';
import type { Log } from '../../src/telemetry/log.ts';
import { newMemoryDatabase } from './database.ts';
import { createFaultyDatabase } from './faulty-database.ts';

/** `sandbox` is active at first. */
export function createSwitchable(pubsub: PubSub, log: Log) {
  const database = createFaultyDatabase(newMemoryDatabase());
  return {
    database,
    active: createActiveEnvironment(createActiveEnvironmentTable(database), pubsub, 'sandbox', log),
    audit: createAuditLog(createAuditTable(database), log),
  };
}
