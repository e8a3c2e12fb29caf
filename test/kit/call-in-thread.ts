/**
 * Runs code with very many promises in a thread of its own. In the thread of the tests, node:test follows every promise by hooks, which
 * take longer than such code itself.
 */

import { Worker } from 'node:worker_threads';
import { endWith, type TestScope } from './test-scope.ts';

const script = `
  const { parentPort, workerData: { module, name, args } } = require('node:worker_threads');
  import(module).then(async (exported) => parentPort.postMessage(await exported[name](...args)));
`;

/**
 * Calls a function in a new thread, which ends with the test. Rejects with its error.
 *
 * @param module the URL of the module that exports the function under its own name
 * @param args   values that can be copied to another thread, as can the result
 */
export function callInThread<Args extends readonly unknown[], Result>(
  t: TestScope,
  module: string,
  { name }: (...args: Args) => Promise<Result>,
  ...args: Args
): Promise<Result> {
  return new Promise((resolve, reject) => {
    // Without the options of this process, such as --test.
    const worker = new Worker(script, { eval: true, execArgv: [], workerData: { module, name, args } });
    endWith(t, () => worker.terminate());
    worker.once('message', resolve).once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the thread of ${name} ended with ${code}`)));
  });
}
