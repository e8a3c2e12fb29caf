/**
 * Why new writes are refused after a restart or a loss of the state, in words for operators and TPP systems. Contains no ids
 * of instances: they concern operators only.
 */

export function causeOf(status: 'ok' | 'checking' | 'lost', missing: number, isAccepted: boolean): string {
  const what = status === 'lost' ? 'The shared state has lost data.' : 'The shared state was restarted.';
  if (missing === 0)
    return `${what} No running instance knows all payments that may be lost; an operator must accept the loss.`;
  const instances = missing === 1 ? 'another instance' : `${missing} other instances`;
  const wait = `${what} The gateway waits for ${instances} to register;`;
  return isAccepted ? `${wait} the loss is accepted.` : `${wait} an operator can accept the loss.`;
}
