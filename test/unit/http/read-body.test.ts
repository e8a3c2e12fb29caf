import assert from 'node:assert/strict';
import { once } from 'node:events';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { createBodyMemoryBudget } from '../../../src/http/body-memory-budget.ts';
import { readBody } from '../../../src/http/read-body.ts';

test('readBody fails with REQUEST_TIMEOUT if the client has disconnected before', async () => {
  const request = new IncomingMessage(new Socket());
  request.destroy();
  await once(request, 'close');
  await assert.rejects(readBody({ body: Buffer.alloc(0) }, request, 1_000, createBodyMemoryBudget(1_000)), {
    code: 'REQUEST_TIMEOUT',
  });
});
