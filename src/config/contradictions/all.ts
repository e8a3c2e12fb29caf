/** Every contradiction that is looked for. */

import type { CrossCheck } from './contradiction.ts';
import * as doors from './doors.ts';
import * as environments from './environments.ts';
import * as files from './files.ts';
import * as state from './state.ts';
import * as times from './times.ts';

export const checks: readonly CrossCheck[] = [doors, environments, files, state, times].flatMap((group) =>
  Object.values(group),
);
