/** The environments of the bank as operators see them: what they are, and how the way to each is. */

import type { EnvironmentView } from '../admin/routes.ts';
import { viewOf } from '../certificates/held.ts';
import type { EnvironmentSettings } from '../config/schema.ts';
import type { Upstreams } from '../upstream/create-upstreams.ts';

/** All of them, in their order; the days that certificates have left are counted from now. */
export function viewsOf(
  environments: readonly EnvironmentSettings[],
  upstreams: Pick<Upstreams, 'circuits' | 'certificates'>,
): readonly EnvironmentView[] {
  const [circuits, certificates] = [upstreams.circuits(), upstreams.certificates()];
  return environments.map(({ name, baseUrl, standardVersion }) => {
    const held = (wanted: 'qwac' | 'qseal') => {
      const found = certificates.find(({ environment, use }) => environment === name && use === wanted);
      return found ? viewOf(found.facts, Date.now()) : null;
    };
    return {
      name,
      baseUrl,
      standardVersion,
      circuits: circuits.filter(({ environment }) => environment === name),
      certificate: held('qwac'),
      signingCertificate: held('qseal'),
    };
  });
}
