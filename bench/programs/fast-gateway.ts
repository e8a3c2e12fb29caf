/** A reverse proxy: fast-gateway, used as its documentation shows. Arguments: PORT UPSTREAM-PORT */

import { createRequire } from 'node:module';

type Gateway = (options: { readonly routes: readonly object[] }) => {
  start(port: number, host: string): Promise<unknown>;
};

// Uses `require` instead of `import`, so that the type check works without the packages that only bench/ installs.
const gateway = createRequire(import.meta.url)('fast-gateway') as Gateway;

const [port, upstreamPort] = process.argv.slice(2).map(Number);
const path = { prefix: '/berlingroup', prefixRewrite: '/berlingroup' };

await gateway({ routes: [{ ...path, target: `http://127.0.0.1:${upstreamPort}` }] }).start(
  Number(port),
  '127.0.0.1',
);
