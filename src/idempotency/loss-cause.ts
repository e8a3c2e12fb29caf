/** Why new writes are refused after a restart or a loss of the state, in words for operators and TPP systems. */

export function causeOf(
  status: 'ok' | 'checking' | 'lost',
  missing: readonly string[],
  isAccepted: boolean,
): string {
  const what = status === 'lost' ? 'The shared state has lost data.' : 'The shared state was restarted.';
  if (missing.length === 0)
    return `${what} No instance remembers all payments that may be lost; an operator must accept the loss.`;
  const wait = `${what} The gateway waits for other instances to register (${missing.join(', ')});`;
  return isAccepted ? `${wait} the loss is accepted.` : `${wait} an operator can accept the loss.`;
}
