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

const isPort = (text: string) => /^\d{1,5}$/.test(text) && Number(text) <= 65_535;
const isBasePath = (path: string) => /^(\/[^/?#\s]+)*$/.test(path);
/** What was probably meant. */
const asBasePath = (path: string) => ['', ...path.split('/').filter((part) => part !== '')].join('/');

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
  if (!isLinkStyle(links)) throw new TypeError(`--links must be one of ${linkStyles.join(', ')}`);
  if (!isPort(port)) throw new TypeError('--port must be a number from 0 to 65535');
  if (!isBasePath(basePath))
    throw new TypeError(
      `--base-path must start with a slash and not end with one: --base-path ${asBasePath(basePath)}`,
    );

  const bank = createSimulatedBank({ name, segment, links, basePath, ...(publicOrigin && { publicOrigin }) });
  const baseUrl = await bank.start(Number(port), host);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, bank.stop);

  const { origin } = new URL(baseUrl);
  const resources = [baseUrl, segment, 'v1'].filter((part) => part !== '').join('/');
  console.log(`${name} listens at ${resources}; control calls: curl ${origin}/_bank/`);
  console.log(`Inject a fault: curl -X PUT ${origin}/_bank/faults -d '{"name":"reset","times":1}'`);
}
