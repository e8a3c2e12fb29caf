/** Which operators there are, by the configuration and the token that stands beside it. */

import { createHash, randomBytes } from 'node:crypto';
import type { AdminSettings } from '../config/schema.ts';
import type { Operator } from './access.ts';

export interface Operators {
  readonly operators: readonly Operator[];
  /** A token made for this run, because nothing was configured: whoever started the gateway must be told. */
  readonly madeToken?: string;
}

/**
 * The configured operators, and "admin" if there is a token.
 *
 * With neither there is an "admin" with a token made for this run: the configuration allows that on loopback only.
 */
export function operatorsOf({ operators }: AdminSettings, token: string | undefined): Operators {
  if (token !== undefined) return { operators: [...operators, admin(token)] };
  if (operators.length > 0) return { operators };
  const madeToken = randomBytes(24).toString('base64url');
  return { operators: [admin(madeToken)], madeToken };
}

function admin(token: string): Operator {
  return { name: 'admin', tokenSha256: createHash('sha256').update(token).digest('hex'), role: 'operate' };
}
