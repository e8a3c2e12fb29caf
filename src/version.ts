/** The version of this release, from `package.json`. */

import { readFileSync } from 'node:fs';

const manifest: unknown = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), { encoding: 'utf8' }),
);

export const version =
  manifest instanceof Object && 'version' in manifest ? String(manifest.version) : 'unknown';
