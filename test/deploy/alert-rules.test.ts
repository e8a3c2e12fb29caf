/** The alert rules, evaluated by Prometheus: promtool runs the cases of alert-rules.yaml. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { onPath } from '../kit/on-path.ts';

const promtool = onPath('promtool') ?? '';
const skip =
  promtool === '' && 'there is no promtool, which is a part of Prometheus: apt-get install prometheus';

test('the alert rules fire for the causes that they name, and not for holds, responses of 404 or equal environments', {
  skip,
}, () => {
  const rules = join(import.meta.dirname, '../../deploy/prometheus/alerts.yaml');
  for (const args of [
    ['check', 'rules', rules],
    ['test', 'rules', join(import.meta.dirname, 'alert-rules.yaml')],
  ]) {
    const { status, stdout, stderr } = spawnSync(promtool, args, { encoding: 'utf8' });
    assert.equal(status, 0, `${stdout}\n${stderr}`);
  }
});
