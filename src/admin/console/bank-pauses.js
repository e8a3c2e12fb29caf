/** The pauses that a bank has asked for, in words. */

import { formatDuration } from './dom.js';

const laneNames = { write: 'payments', read: 'reads', status: 'status reads' };

/** `status reads of shop for sepa-credit-transfers paused for 3s` */
export function describePause({ lane, tenant, product, pausedMs }) {
  const calls = lane === undefined ? 'calls' : laneNames[lane];
  const ofTenant = tenant === undefined ? '' : ` of ${tenant}`;
  const forProduct = product === undefined ? '' : ` for ${product}`;
  return `${calls}${ofTenant}${forProduct} paused for ${formatDuration(Math.ceil(pausedMs / 1_000) * 1_000)}`;
}
