/** Where the tests find an HTTP proxy for outgoing connections. */

import { onPath } from './on-path.ts';

/** The program to start, or `undefined` if there is none: `TINYPROXY_BIN`, else the first on the PATH. */
export const tinyproxyProgram = (): string | undefined => process.env.TINYPROXY_BIN ?? onPath('tinyproxy');

export const howToGetTinyproxy = 'apt-get install tinyproxy-bin, or brew install tinyproxy';

/** Where a missing one is a failure and not a skip. */
export const tinyproxyIsRequired = (): boolean => process.env.CI === 'true';
