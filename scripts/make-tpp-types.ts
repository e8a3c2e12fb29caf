/** `npm run types:tpp`: makes the types of the example client from docs/tpp-openapi.yaml, whose digest they name. Needs the network. */

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';

const description = 'docs/tpp-openapi.yaml';
/** Not a dependency: it needs TypeScript 5, and this repository has 7. */
const generator = 'openapi-typescript@7.13.0';

const packages = ['--package', generator, '--package', 'typescript@5.9.3'];
const types = execFileSync('npx', ['--yes', ...packages, 'openapi-typescript', description], {
  encoding: 'utf8',
  maxBuffer: 16 * 1024 * 1024,
});
const digest = createHash('sha256').update(readFileSync(description)).digest('hex');
const origin = `// ${generator.replace('@', ' ')}, from ${description} with the SHA-256 ${digest}`;
writeFileSync('examples/callers/penstock-api.d.ts', `${origin}\n${types}`);
