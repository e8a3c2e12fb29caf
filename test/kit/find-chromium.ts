/** Where the tests of the console find a browser: the distribution's, never one that is downloaded. */

import { onPath } from './on-path.ts';

/** The program to start, or `undefined` if there is none: `CHROMIUM_BIN`, else the first on the PATH. */
export const chromiumProgram = (): string | undefined =>
  process.env.CHROMIUM_BIN ?? onPath('chromium') ?? onPath('chromium-browser') ?? onPath('google-chrome');

/** How to install one. */
export const howToGetChromium =
  'apt-get install chromium, or apk add chromium, or brew install --cask chromium, or CHROMIUM_BIN with the path of one';

/** Where a missing browser is a failure and not a skip. */
export const chromiumIsRequired = (): boolean => process.env.CI === 'true';
