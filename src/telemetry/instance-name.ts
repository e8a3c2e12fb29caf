/** The name of an instance: in log lines, in the fleet and the timeline, and in the records of the shared state. */

import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';

/**
 * The host and random digits: the processes of one host have different names, and a restarted one gets a new name.
 *
 * @param host of this machine; in Kubernetes, the name of the pod
 */
export function newInstanceName(host: string = hostname()): string {
  const label = host.split('.')[0]?.replaceAll(/[^\w-]/g, '') || 'host';
  return `${label.slice(0, maxLabelLength)}-${randomBytes(6).toString('hex')}`;
}

/** RFC 1035, section 2.3.4. */
const maxLabelLength = 63;
