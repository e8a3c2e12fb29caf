/** Runs before the tests: installs PostgreSQL if it is missing and may be installed, otherwise prints how to install it. */

import {
  howToGetPostgres,
  postgresIsRequired,
  postgresPrograms,
  runningPostgres,
} from '../test/kit/find-postgres.ts';
import { install, mayInstall } from './apt.ts';

const found = () => runningPostgres() ?? postgresPrograms();

if (!found() && mayInstall()) install('postgresql', 'a PostgreSQL');
if (!found()) {
  console.error(
    `PostgreSQL is not installed: the tests that need it are skipped. To install it: ${howToGetPostgres}`,
  );
  if (postgresIsRequired()) process.exitCode = 1;
}
