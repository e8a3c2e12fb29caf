/**
 * `penstock tenants` and `penstock environment moved`, `rename`: say which tenants and environments are the same. They call the
 * admin API of a running gateway. If none answers, as after a refused start, they change the database of the configuration.
 */

import { userInfo } from 'node:os';
import { z } from 'zod';
import { describeErrors, identityRequests } from '../admin/request-schemas.ts';
import { UnusableConfigError } from '../config/config-errors.ts';
import { configSource, loadConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { createAuditLog } from '../environments/audit-log.ts';
import {
  createChangeIdentities,
  type IdentityAction,
  type IdentityChangeResult,
} from '../identities/change-identities.ts';
import { createAuditTable } from '../store/audit.ts';
import { type Database, DatabaseError } from '../store/database.ts';
import { openGatewayDatabase, prepareDatabase, refuseWithoutAccess } from '../store/gateway-database.ts';
import { createIdentityTable } from '../store/identities.ts';
import { connectToGateway } from './admin-client.ts';
import { parseBody, successBody } from './admin-response.ts';
import type { Options } from './command.ts';
import { CommandError, UsageError } from './command-error.ts';
import { type CommandOutput, success } from './command-output.ts';
import { exitCodes } from './exit-codes.ts';
import { showHealth } from './health.ts';
import { validConfig } from './valid-config.ts';

interface Change {
  readonly action: IdentityAction;
  readonly name: string;
  readonly to: string;
  readonly reason: string;
}

const paths: Readonly<Record<IdentityAction, (name: string) => string>> = {
  'rename tenant': (name) => `/tenants/${name}/rename`,
  'move credential': (name) => `/clients/${name}/move-credential`,
  'rename environment': (name) => `/environments/${name}/rename`,
  'move environment': (name) => `/environments/${name}/moved`,
};

const resultBody = z.object({ result: z.string() });

export async function changeIdentities(options: Options, change: Change): Promise<CommandOutput> {
  if (!(await isGatewayRunning(options))) return changeDatabase(options, change);
  const { action, name, to, reason } = change;
  const path = paths[action](encodeURIComponent(name));
  const data = successBody(await connectToGateway(options)('POST', path, { to, reason }));
  return success([parseBody(resultBody, data).result], data);
}

/** @throws CommandError if none answers at the address that the command line names: its database is not known */
async function isGatewayRunning(options: Options): Promise<boolean> {
  try {
    await showHealth({ ...options, live: true });
    return true;
  } catch (thrown) {
    const isSilent = thrown instanceof CommandError && thrown.exitCode === exitCodes.unavailable;
    if (!isSilent || options.url !== undefined) throw thrown;
    return false;
  }
}

async function changeDatabase(options: Options, { action, ...change }: Change): Promise<CommandOutput> {
  const { config } = validConfig(loadConfig(configSource(options.config)));
  const parsed = identityRequests[action].safeParse({ to: change.to, reason: change.reason });
  if (!parsed.success) throw new UsageError(describeErrors(parsed.error));
  const { outcome, text } = await withDatabase(config, (database) => {
    const auditLog = createAuditLog(createAuditTable(database), () => {});
    const apply = createChangeIdentities({
      table: createIdentityTable(database),
      clients: () => config.clients,
      audit: { record: async (event) => void (await auditLog.append(event)) },
    });
    return apply({ action, name: change.name, ...parsed.data, who: `command line (${userName()})` });
  });
  if (outcome !== 'done') throw new CommandError(exitCodes.refused, text);
  return success([text, 'No gateway answered: the database was changed directly.'], { result: text });
}

async function withDatabase(
  { state }: Config,
  use: (database: Database) => Promise<IdentityChangeResult>,
): Promise<IdentityChangeResult> {
  if (state.postgres === null && state.file === null)
    throw new CommandError(
      exitCodes.unavailable,
      'No gateway answers, and the configuration has no database that could be changed. Start the gateway, or name its admin listener with --url.',
    );
  const { database, heartbeatDatabase } = openGatewayDatabase(state);
  try {
    await prepareDatabase(database, state);
    return await refuseWithoutAccess(use(database));
  } catch (cause) {
    if (cause instanceof UnusableConfigError)
      throw new CommandError(exitCodes.config, cause.message, { cause });
    if (!(cause instanceof DatabaseError)) throw cause;
    throw new CommandError(
      exitCodes.unavailable,
      `No gateway answers, and its database cannot be used: ${cause.reason}`,
      { cause },
    );
  } finally {
    await database.close();
    if (heartbeatDatabase !== database) await heartbeatDatabase.close();
  }
}

/** Some containers have no name for their user. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}
