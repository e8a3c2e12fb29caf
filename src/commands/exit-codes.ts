/** The exit codes of all commands. Those from 64 on are codes of sysexits.h. */

export const exitCodes = {
  ok: 0,
  refused: 1,
  critical: 2,
  usage: 64,
  unavailable: 69,
  internal: 70,
  permission: 77,
  config: 78,
} as const;

/** What each code means, for `penstock --help` and the documentation. */
export const exitCodeMeanings: readonly (readonly [code: number, meaning: string])[] = [
  [exitCodes.ok, 'success'],
  [exitCodes.refused, 'refused, or a problem (status: a warning; serve: no start, early end)'],
  [exitCodes.critical, 'status: customers cannot pay, or money is uncertain'],
  [exitCodes.usage, 'wrong command line'],
  [exitCodes.unavailable, 'no gateway answers, or it cannot reach its database or Redis'],
  [exitCodes.internal, 'internal error'],
  [exitCodes.permission, 'no operator token, an unknown one, or one whose role does not allow this'],
  [exitCodes.config, 'invalid configuration'],
];
