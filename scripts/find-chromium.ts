/** Runs before the tests: installs Chromium if it is missing and may be installed, otherwise prints how to install it. */

import { chromiumIsRequired, chromiumProgram, howToGetChromium } from '../test/kit/find-chromium.ts';
import { install, mayInstall } from './apt.ts';

if (!chromiumProgram() && mayInstall()) install('chromium', 'a browser');
if (!chromiumProgram()) {
  console.error(
    `Chromium is not installed: the tests of the console are skipped. To install it: ${howToGetChromium}`,
  );
  if (chromiumIsRequired()) process.exitCode = 1;
}
