import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createEndpointGate, type GateDecision } from '../../../src/notifications/endpoint-gate.ts';

const never = new AbortController().signal;

function setUp() {
  const clock = { nowMs: 1_000 };
  const gate = createEndpointGate(() => clock.nowMs);
  const leaves: ((succeeded: boolean) => void)[] = [];
  async function enter(signal = never): Promise<GateDecision> {
    const admission = await gate.enter('endpoint', signal);
    if (admission.kind === 'send') leaves.push(admission.leave);
    return admission;
  }
  /** Ends the oldest attempts, which took so long. */
  function end(count: number, succeeded: boolean, tookMs = 0): void {
    clock.nowMs += tookMs;
    for (const leave of leaves.splice(0, count)) leave(succeeded);
  }
  return { gate, enter, end, leaves, clock };
}

describe('the gate of an endpoint', () => {
  test('lets eight messages be sent, and the next ones as soon as one of them has ended', async () => {
    const { enter, end, leaves } = setUp();
    for (let index = 0; index < 8; index++) assert.equal((await enter()).kind, 'send');
    const waiting = enter();
    end(1, true);
    assert.equal((await waiting).kind, 'send');
    assert.equal(leaves.length, 8);
  });

  test('sends messages back, each one for a later time, at the pace of the endpoint', async () => {
    const { enter, end } = setUp();
    for (let index = 0; index < 8; index++) await enter();
    end(8, true, 8_000);
    for (let index = 0; index < 8; index++) await enter();
    const turns: number[] = [];
    for (let index = 0; index < 1_000; index++) {
      const admission = await enter();
      if (admission.kind === 'busy') turns.push(admission.inMs);
    }
    assert.equal(turns.length, 1_000);
    assert.ok(turns.every((inMs, index) => inMs >= (turns[index - 1] ?? 1_000)));
    assert.equal(turns.at(-1), 300_000, 'at the longest');
    assert.ok(turns.filter((inMs) => inMs <= 10_000).length < 20, 'as many as it accepts in that time');
  });

  test('lets few messages of a fast endpoint wait, and sends the others back at the pace that it measures', async () => {
    const { enter, end, gate, leaves, clock } = setUp();
    for (let index = 0; index < 8; index++) await enter();
    end(8, true);
    for (let index = 0; index < 8; index++) await enter();
    const waiting = Array.from({ length: 24 }, () => enter());
    const sendBack = async () => {
      const admission = await gate.enter('endpoint', never);
      return admission.kind === 'busy' ? admission.inMs : assert.fail(admission.kind);
    };
    assert.equal(await sendBack(), 1_000);
    for (let index = 0; index < 128; index++) {
      clock.nowMs += 10;
      leaves.shift()?.(true);
      assert.equal((await waiting.shift())?.kind, 'send');
      waiting.push(enter());
    }
    let inMs = 0;
    for (let index = 0; index < 1_000; index++) inMs = await sendBack();
    assert.ok(inMs >= 5_000 && inMs <= 10_000, `a thousand messages at 10 ms each: ${inMs}`);
  });

  test('sends a message back that waits too long, and all of them when the instance stops', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { enter } = setUp();
    for (let index = 0; index < 8; index++) await enter();
    const stop = new AbortController();
    const [first, second] = [enter(), enter(stop.signal)];
    stop.abort();
    assert.equal((await second).kind, 'busy');
    t.mock.timers.tick(1_000);
    assert.equal((await first).kind, 'busy');
  });

  test('lets one message at a time be sent after three failures in a row, until one succeeds', async () => {
    const { enter, end } = setUp();
    for (let index = 0; index < 8; index++) await enter();
    end(3, false);
    assert.deepEqual(await enter(), { kind: 'failing' });
    end(5, false);
    assert.equal((await enter()).kind, 'send');
    assert.equal((await enter()).kind, 'failing');
    end(1, true);
    for (let index = 0; index < 8; index++) assert.equal((await enter()).kind, 'send');
  });
});
