/** What a `scaStatus` says about the future of an authorisation. */

/** The codes that 1.3.6 and 1.3.11 know alike (OpenAPI, `scaStatus`). */
export const scaStatuses = [
  'received',
  'psuIdentified',
  'psuAuthenticated',
  'scaMethodSelected',
  'started',
  'unconfirmed', // waits for the TPP to confirm
  'finalised',
  'failed',
  'exempted',
] as const;

type ScaStatus = (typeof scaStatuses)[number];

const final: readonly string[] = ['finalised', 'failed', 'exempted'] satisfies readonly ScaStatus[];

/** "This is a final status of the authorisation resource" (OpenAPI 1.3.6 and 1.3.11); unknown codes are not. */
export function isFinalScaStatus(code: string): boolean {
  return final.includes(code);
}
