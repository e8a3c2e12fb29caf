/** Sees to it, before the tests, that there is a browser for them: installs one where it may, else says how to. */

import { chromiumIsRequired, chromiumProgram, howToGetChromium } from '../test/kit/find-chromium.ts';
import { install, mayInstall } from './apt.ts';

if (!chromiumProgram() && mayInstall()) install('chromium', 'a browser');
if (!chromiumProgram()) {
  console.error(`There is no browser: the tests of the console are skipped. Get one: ${howToGetChromium}`);
  if (chromiumIsRequired()) process.exitCode = 1;
}
