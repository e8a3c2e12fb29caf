import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createStorageBudget } from '../../../src/idempotency/storage-budget.ts';
import { GatewayError, stateUnavailable } from '../../../src/request/errors.ts';
import { createMemoryTokenBuckets } from '../../../src/state/memory.ts';
import type { TokenBuckets } from '../../../src/state/ports.ts';
import type { BoundCounter } from '../../../src/telemetry/metrics.ts';
import { settleTasks } from './fake-time.ts';

const mebibyte = 1024 * 1024;
const windowMs = 86_400_000;
const maxStored = 4 * mebibyte;

/** Instances with a common bucket, at the same time. */
function startBudgets() {
  const world = { nowMs: 0, commands: 0, isFailing: false, maxStoredPerTenant: maxStored };
  const now = () => world.nowMs;
  const shared = createMemoryTokenBuckets(now);
  const buckets: Pick<TokenBuckets, 'reserve'> = {
    async reserve(...all) {
      world.commands++;
      if (world.isFailing) throw stateUnavailable();
      return shared.reserve(...all);
    },
  };
  const metrics = new Map<string, number>();
  const logged: string[] = [];
  const create = () =>
    createStorageBudget(
      buckets,
      () => ({ maxStoredPerTenant: world.maxStoredPerTenant, window: windowMs }),
      {
        metrics: {
          increment: (name, labels, by = 1) => {
            counterIn(metrics, name, labels).value += by;
          },
          counter: (name, labels) => counterIn(metrics, name, labels),
        },
        log: (level, message) => void logged.push(`${level}: ${message}`),
      },
      now,
    );
  return { world, metrics, logged, create };
}

/** A counter whose value is an entry of the map. */
function counterIn(metrics: Map<string, number>, name: string, labels: object): BoundCounter {
  const key = `${name} ${Object.values(labels).join()}`;
  return {
    get value() {
      return metrics.get(key) ?? 0;
    },
    set value(value) {
      metrics.set(key, value);
    },
  };
}

type Budget = ReturnType<ReturnType<typeof startBudgets>['create']>;

function refusalOf(budget: Budget, tenant: string): GatewayError | undefined {
  try {
    budget.check(tenant);
    return undefined;
  } catch (thrown) {
    assert.ok(thrown instanceof GatewayError);
    return thrown;
  }
}

/** Stores entries until the budget refuses. @returns how many bytes were stored */
async function fill(budget: Budget, tenant: string, entryBytes: number): Promise<number> {
  let stored = 0;
  while (!refusalOf(budget, tenant)) {
    budget.countEntry(tenant, entryBytes);
    stored += entryBytes;
    await settleTasks();
  }
  return stored;
}

describe('the storage budget of a tenant', () => {
  test('refuses new writes of this tenant only, once half of it is stored at once', async () => {
    const { create, metrics, logged } = startBudgets();
    const budget = create();
    const stored = await fill(budget, 'shop', 90_000);
    assert.ok(stored > 0.45 * maxStored && stored < 0.55 * maxStored, `${stored} bytes`);
    const refusal = refusalOf(budget, 'shop');
    assert.equal(refusal?.code, 'QUOTA_EXCEEDED');
    assert.match(
      refusal?.message ?? '',
      /idempotency.maxStoredPerTenant.*nothing was sent. Try again in \d+ s/,
    );
    assert.equal(refusalOf(budget, 'rival'), undefined);
    assert.equal(metrics.get('penstock_storage_refusals_total shop'), 2);
    assert.ok((metrics.get('penstock_stored_bytes_total shop') ?? 0) > stored);
    assert.equal(logged.length, 1);
  });

  test('accepts new writes again after Retry-After', async () => {
    const { create, world } = startBudgets();
    const budget = create();
    await fill(budget, 'shop', 90_000);
    const [, seconds] = refusalOf(budget, 'shop')?.headers[0] ?? [];
    assert.ok(Number(seconds) > 60, seconds);
    world.nowMs += Number(seconds) * 1_000;
    assert.equal(refusalOf(budget, 'shop'), undefined);
  });

  test('accepts new writes at once after an operator has raised the limit', async () => {
    const { create, world } = startBudgets();
    const budget = create();
    await fill(budget, 'shop', 90_000);
    world.maxStoredPerTenant = 2 * maxStored;
    const more = await fill(budget, 'shop', 90_000);
    assert.ok(more > 0.9 * maxStored && more < 1.1 * maxStored, `${more} bytes`);
  });

  test('is not exceeded in any window, however long a tenant stores as much as it can', async () => {
    const { create, world } = startBudgets();
    const budget = create();
    const stepMs = windowMs / 500;
    const stored: number[] = [];
    for (; world.nowMs < 3 * windowMs; world.nowMs += stepMs) stored.push(await fill(budget, 'shop', 1_600));
    const total = (from: number) => stored.slice(from, from + 500).reduce((sum, bytes) => sum + bytes, 0);
    for (const from of [0, 300, 600, 900]) assert.ok(total(from) < maxStored, `${total(from)} from ${from}`);
    assert.ok(total(600) > 0.3 * maxStored, `${total(600)} bytes`);
  });

  test('is shared by all instances', async () => {
    const { create } = startBudgets();
    const [one, other] = [create(), create()];
    const first = await fill(one, 'shop', 90_000);
    const second = await fill(other, 'shop', 90_000);
    assert.ok(second < 0.1 * first, `${second} after ${first} bytes`);
  });

  test('costs one command for about 30 payments', async () => {
    const { create, world } = startBudgets();
    const budget = create();
    for (let payment = 0; payment < 300; payment++) budget.countEntry('shop', 1_600);
    assert.ok(world.commands >= 8 && world.commands <= 10, `${world.commands} commands`);
  });

  test('counts what was stored while the bucket could not be reached as soon as it can', async () => {
    const { create, world } = startBudgets();
    const budget = create();
    world.isFailing = true;
    budget.countEntry('shop', 0.45 * maxStored);
    await settleTasks();
    world.isFailing = false;
    assert.ok((await fill(budget, 'shop', 1_600)) < 0.1 * maxStored);
  });
});
