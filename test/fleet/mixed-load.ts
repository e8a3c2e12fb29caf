/** The requests of a load on a fleet. */

import type { Call } from '../kit/call.ts';
import { initiation, transfersPath } from '../kit/request.ts';

/** New payments, details that may take their time, and status reads; pairs of numbers are of one sort. */
export function mixed(ids: readonly string[], number: number): Call {
  const path = `${transfersPath}/${ids[number % ids.length]}`;
  switch (Math.floor(number / 2) % 4) {
    case 0:
      return initiation;
    case 1:
      return { method: 'GET', path };
    default:
      return { method: 'GET', path: `${path}/status` };
  }
}
