import assert from 'node:assert/strict';
import { once } from 'node:events';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { createBodyMemoryBudget } from '../../../src/http/body-memory-budget.ts';
import { readBody } from '../../../src/http/read-body.ts';

test('a caller that went before its body was read is not waited for', async () => {
  const request = new IncomingMessage(new Socket());
  request.destroy();
  await once(request, 'close');
  await assert.rejects(readBody(request, 1_000, createBodyMemoryBudget(1_000)), { code: 'REQUEST_TIMEOUT' });
});
