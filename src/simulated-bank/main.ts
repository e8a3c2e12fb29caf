/** The command line of the simulated bank: `npm run bank -- --port 9101`. */
import { parseArgs } from 'node:util';
import type { LinkStyle } from './links.ts';
import { createSimulatedBank } from './server.ts';

const linkStyles: readonly string[] = [
  'absolute',
  'relative',
  'relative-without-segment',
  'relative-without-base',
] satisfies LinkStyle[];
const isLinkStyle = (value: string): value is LinkStyle => linkStyles.includes(value);

const options = {
  port: { type: 'string', default: '9101' },
  host: { type: 'string', default: '127.0.0.1' },
  name: { type: 'string', default: 'bank' },
  'base-path': { type: 'string', default: '' },
  segment: { type: 'string', default: 'berlingroup' },
  links: { type: 'string', default: 'absolute' },
  'public-origin': { type: 'string' },
} as const;

try {
  await run();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

async function run(): Promise<void> {
  const { values } = parseArgs({ options });
  const { port, host, name, segment, links, 'base-path': basePath, 'public-origin': publicOrigin } = values;
  if (!isLinkStyle(links)) throw new TypeError(`--links is one of ${linkStyles.join(', ')}, not ${links}`);

  const bank = createSimulatedBank({ name, segment, links, basePath, ...(publicOrigin && { publicOrigin }) });
  const baseUrl = await bank.start(Number(port), host);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, bank.stop);

  const { origin } = new URL(baseUrl);
  const resources = [baseUrl, segment, 'v1'].filter((part) => part !== '').join('/');
  console.log(`${name} listens at ${resources}; what it can do: curl ${origin}/_bank/`);
  console.log(`Let it fail: curl -X PUT ${origin}/_bank/faults -d '{"name":"reset","times":1}'`);
}
