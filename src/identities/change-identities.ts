/** Renames tenants and environments, gives clients to other tenants, and moves environments: only operators know what is the same. */

import type { Config } from '../config/schema.ts';
import type { AuditRecorder } from '../request/audit-event.ts';
import { asGatewayError } from '../request/errors.ts';
import type { IdentityTable, RenameOutcome } from '../store/identities.ts';
import { credentialsOf } from './contradictions.ts';

/** As the audit log names them. */
export type IdentityAction = 'rename tenant' | 'move credential' | 'rename environment' | 'move environment';

export interface IdentityChange {
  readonly action: IdentityAction;
  /** The tenant, the client, or the environment. */
  readonly name: string;
  /** Its new name, the tenant of the client, or the new origin and base path of the environment. */
  readonly to: string;
  readonly reason: string;
  /** The operator. */
  readonly who: string;
}

export interface IdentityChangeResult {
  readonly outcome: 'done' | 'unknown' | 'refused';
  /** A sentence. */
  readonly text: string;
}

/** @throws DatabaseError; the change may have been made nevertheless */
export type ChangeIdentities = (change: IdentityChange) => Promise<IdentityChangeResult>;

interface ChangeDependencies {
  readonly table: IdentityTable;
  /** Those of the configuration. */
  readonly clients: () => Config['clients'];
  readonly audit: AuditRecorder;
}

/** Every use writes an audit record, also if it is refused or fails. */
export function createChangeIdentities({ table, clients, audit }: ChangeDependencies): ChangeIdentities {
  return async (change) => {
    const { action, who, ...details } = change;
    const record = (outcome: string, why?: string) =>
      audit.record({ who, action, outcome, details: { ...details, ...(why !== undefined && { why }) } });
    let result: IdentityChangeResult;
    try {
      result = await apply(change);
    } catch (thrown) {
      await record('failed', asGatewayError(thrown).message);
      throw thrown;
    }
    await (result.outcome === 'done' ? record('done') : record('refused', result.text));
    return result;
  };

  async function apply({ action, name, to }: IdentityChange): Promise<IdentityChangeResult> {
    switch (action) {
      case 'rename tenant':
        return renamed('tenant', name, to, await table.renameTenant(name, to));
      case 'rename environment':
        return renamed('environment', name, to, await table.renameEnvironment(name, to));
      case 'move credential':
        return moveCredential(name, to);
      case 'move environment': {
        const former = await table.moveEnvironment(name, to);
        if (former === undefined)
          return {
            outcome: 'unknown',
            text: `No payment was ever sent to an environment "${name}": its baseUrl can be changed without this.`,
          };
        if (former === to) return done(`Nothing changes: the payments of ${name} are at ${to} already.`);
        return done(`The payments of ${name} continue at ${to}, and not at ${former} any more.`);
      }
    }
  }

  async function moveCredential(name: string, to: string): Promise<IdentityChangeResult> {
    const client = clients().find((one) => one.name === name);
    if (!client) return { outcome: 'unknown', text: `No client "${name}" is configured.` };
    await table.moveCredentials(
      credentialsOf(client).map(({ hash }) => hash),
      to,
    );
    return done(
      `The client ${name} works for tenant ${to}. Reload all instances now: until then, they refuse its requests. ` +
        'Payments that it made before stay with the former tenant; if it repeated one of these requests, the bank would pay again.',
    );
  }
}

function renamed(what: string, from: string, to: string, outcome: RenameOutcome): IdentityChangeResult {
  switch (outcome) {
    case 'renamed':
      if (from === to) return done(`Nothing changes: the ${what} has the name ${to} already.`);
      return done(
        `The ${what} ${from} is also named ${to} now: set the new name in the configuration, and reload.`,
      );
    case 'unknown':
      return { outcome: 'unknown', text: `No ${what} has or has had the name "${from}".` };
    case 'in-use':
      return {
        outcome: 'refused',
        text: `Another ${what} has or has had the name "${to}": choose another one.`,
      };
  }
}

const done = (text: string): IdentityChangeResult => ({ outcome: 'done', text });
