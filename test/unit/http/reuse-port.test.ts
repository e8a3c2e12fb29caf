import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { reusePortWarning } from '../../../src/http/reuse-port.ts';
import { temporaryFolder } from '../../kit/folder.ts';

describe('reusePortWarning', () => {
  test('returns nothing if the system migrates connections to other processes', (t) => {
    const file = join(temporaryFolder(t), 'tcp_migrate_req');
    writeFileSync(file, '1\n');
    assert.equal(reusePortWarning(file), undefined);
  });

  test('names the loss and the setting if the system does not migrate connections', (t) => {
    const file = join(temporaryFolder(t), 'tcp_migrate_req');
    assert.match(
      reusePortWarning(file) ?? '',
      /can reset new connections .* sysctl -w net\.ipv4\.tcp_migrate_req=1/,
    );
    writeFileSync(file, '0\n');
    assert.match(reusePortWarning(file) ?? '', /can reset new connections/);
  });
});
