import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { reusePortWarning } from '../../../src/http/reuse-port.ts';
import { temporaryFolder } from '../../kit/folder.ts';

describe('lossAtStop', () => {
  test('has nothing to say where the system hands connections on', (t) => {
    const file = join(temporaryFolder(t), 'tcp_migrate_req');
    writeFileSync(file, '1\n');
    assert.equal(reusePortWarning(file), undefined);
  });

  test('says what is lost and what to set where it does not, or cannot', (t) => {
    const file = join(temporaryFolder(t), 'tcp_migrate_req');
    assert.match(reusePortWarning(file) ?? '', /are reset; .* sysctl -w net\.ipv4\.tcp_migrate_req=1/);
    writeFileSync(file, '0\n');
    assert.match(reusePortWarning(file) ?? '', /are reset/);
  });
});
