/** The handlers that change what tenants and environments are the same. */

import type { ChangeIdentities, IdentityAction } from '../identities/change-identities.ts';
import { AdminRefusal } from './admin-refusal.ts';
import { operatorOf } from './authenticate-operator.ts';
import type { AdminApi, AdminCall } from './routes.ts';

export interface IdentityDependencies {
  readonly changeIdentities: ChangeIdentities;
}

type IdentityRoute = 'renameTenant' | 'moveCredential' | 'renameEnvironment' | 'moveEnvironment';

export function createIdentityHandlers({
  changeIdentities,
}: IdentityDependencies): Pick<AdminApi, IdentityRoute> {
  const handle =
    (action: IdentityAction) =>
    async ({ parameters: { name }, body, response }: AdminCall<IdentityRoute>) => {
      const { outcome, text } = await changeIdentities({
        action,
        name,
        ...body,
        who: operatorOf(response).name,
      });
      if (outcome === 'done') return { result: text };
      throw new AdminRefusal(outcome === 'unknown' ? 404 : 409, text);
    };
  return {
    renameTenant: handle('rename tenant'),
    moveCredential: handle('move credential'),
    renameEnvironment: handle('rename environment'),
    moveEnvironment: handle('move environment'),
  };
}
