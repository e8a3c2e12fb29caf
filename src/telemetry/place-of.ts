/** Where something was thrown, for the log. */

/** What was thrown, and where; never its message, which may quote what a request or an answer held, as JSON.parse does. */
export function placeOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return `thrown: ${typeof thrown}`;
  const { name, message, stack = '' } = thrown;
  const code = 'code' in thrown ? ` ${thrown.code}` : '';
  const frames = stack.replace(message, '').match(/^ {4}at .+$/gm) ?? [];
  return [name + code, ...frames].join('\n');
}
