import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { z } from 'zod';
import { parseBody, successBody } from '../../../src/commands/admin-response.ts';

describe('a response of the admin API', () => {
  test('of another form is reported as one of another version, not as a bug', () => {
    const expected = { message: /version that the gateway has/, exitCode: 70 };
    assert.throws(() => parseBody(z.object({ active: z.string() }), { active: 1 }), expected);
    assert.throws(() => successBody({ ok: false, status: 500, body: [] }), expected);
  });

  test('that refuses a request becomes an error with the exit code of its status', () => {
    for (const [status, exitCode] of [
      [400, 64],
      [403, 77],
      [404, 1],
      [409, 1],
      [421, 64],
      [500, 70],
      [503, 69],
    ] as const)
      assert.throws(() => successBody({ ok: false, status, body: { error: 'no', report: 1 } }), {
        message: 'no',
        exitCode,
        data: { report: 1 },
      });
  });

  test('to an unknown token says where the token comes from', () => {
    assert.throws(() => successBody({ ok: false, status: 401, body: { error: 'no' } }), {
      message: /set PENSTOCK_ADMIN_TOKEN, or name a file with --token-file/,
      exitCode: 77,
    });
  });
});
