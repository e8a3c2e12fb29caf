/** Runs before the tests: installs tinyproxy if it is missing and may be installed, otherwise prints how to install it. */

import { howToGetTinyproxy, tinyproxyIsRequired, tinyproxyProgram } from '../test/kit/find-tinyproxy.ts';
import { install, mayInstall } from './apt.ts';

if (!tinyproxyProgram() && mayInstall()) install('tinyproxy-bin', 'an egress proxy');
if (!tinyproxyProgram()) {
  console.error(
    `tinyproxy is not installed: the tests of egress proxies are skipped. To install it: ${howToGetTinyproxy}`,
  );
  if (tinyproxyIsRequired()) process.exitCode = 1;
}
