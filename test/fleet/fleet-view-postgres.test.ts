/** What each of two instances on PostgreSQL, without Redis, shows of all of them. */

import { describe } from 'node:test';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { testFleetView } from './fleet-view-contract.ts';

describe('the fleet view of two instances without Redis', { skip: skipWithoutPostgres }, () => {
  testFleetView(async () => undefined, 2);
});
