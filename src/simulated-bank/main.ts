/** The command line of the simulated bank: `npm run bank -- --port 9101`. */
import { parseArgs } from 'node:util';
import type { BankOptions } from './bank.ts';
import type { LinkStyle } from './links.ts';
import { createSimulatedBank } from './server.ts';

const linkStyles: readonly string[] = ['absolute', 'relative', 'relative-without-base'] satisfies LinkStyle[];
const isLinkStyle = (value: string): value is LinkStyle => linkStyles.includes(value);

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '9101' },
    host: { type: 'string', default: '127.0.0.1' },
    name: { type: 'string', default: 'bank' },
    'base-path': { type: 'string', default: '' },
    segment: { type: 'string', default: 'berlingroup' },
    links: { type: 'string', default: 'absolute' },
    'public-origin': { type: 'string' },
  },
});

const { port, host, name, segment, links, 'base-path': basePath, 'public-origin': publicOrigin } = values;
if (!isLinkStyle(links)) throw new TypeError(`--links must be one of ${linkStyles.join(', ')}, not ${links}`);
const options: BankOptions = { name, segment, links, basePath, ...(publicOrigin && { publicOrigin }) };

const bank = createSimulatedBank(options);
const baseUrl = await bank.start(Number(port), host);
const { origin } = new URL(baseUrl);
console.log(
  `${name} speaks payment initiation at ${[baseUrl, segment, 'v1'].filter((part) => part).join('/')}`,
);
console.log(
  `Faults: curl -X PUT ${origin}/_bank/faults -d '{"name":"reset","times":1}'; all else: curl ${origin}/_bank/`,
);

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, bank.stop);
