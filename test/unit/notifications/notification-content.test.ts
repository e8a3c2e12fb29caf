import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseContentPreferred, serializeContent } from '../../../src/notifications/notification-content.ts';

describe('the preferred content of notifications', () => {
  for (const [values, sent] of [
    [['status=SCA,PROCESS,LAST'], 'status=SCA,PROCESS'],
    [['status=LAST'], 'status=LAST'],
    [['status=LAST,SCA'], 'status=SCA,LAST'],
    [[' Status = last , sca '], 'status=SCA,LAST'],
    [['status=SCA'], 'status=SCA'],
    [['status=SCA,OTHER'], 'status=SCA'],
    [['status=PROCESS,PROCESS'], 'status=PROCESS'],
    [['status=LAST,OTHER'], 'status=LAST'],
    [['status=OTHER'], 'status=PROCESS'],
    [['status='], 'status=PROCESS'],
    [['LAST'], 'status=PROCESS'],
    [[], 'status=PROCESS'],
    [['status=LAST', 'status=SCA'], 'status=PROCESS'],
  ] as const)
    test(`${JSON.stringify(values)} is answered with ${sent}`, () =>
      assert.equal(serializeContent(parseContentPreferred(values)), sent));
});
