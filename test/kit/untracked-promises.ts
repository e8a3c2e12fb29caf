/**
 * Ends the tracking of promises by node:test when all tests are defined. node:test assigns what is defined and what fails to a test by async
 * hooks, with a record and a callback of the garbage collection for every promise. Gateways and banks in the thread of the tests
 * create millions of promises: the hooks took a third of the CPU time.
 *
 * An uncaught error still fails the run. node:test often cannot name the test that caused it: this prints its stack.
 */

import { type AsyncHook, createHook } from 'node:async_hooks';
import { before } from 'node:test';
import { inspect } from 'node:util';

/** Node's own option `trackPromises: false` sets this property of a hook. */
const untracked = Object.getOwnPropertySymbols(createHook({})).find(
  ({ description }) => description === 'kNoPromiseHook',
);

const hooks: { enable(this: AsyncHook): AsyncHook } = Object.getPrototypeOf(createHook({}));
const { enable } = hooks;
let hookOfTests: AsyncHook | undefined;
hooks.enable = function (this: AsyncHook) {
  hookOfTests = this;
  return enable.call(this);
};
// The first use of node:test enables its hook.
before(() => {
  if (!hookOfTests || !untracked) return;
  hookOfTests.disable();
  Object.assign(hookOfTests, { [untracked]: true }).enable();
});
hooks.enable = enable;

for (const event of ['uncaughtException', 'unhandledRejection'])
  process.on(event, (error: unknown) => process.stderr.write(`${event}: ${inspect(error)}\n`));
