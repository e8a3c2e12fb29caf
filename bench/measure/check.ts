/** Whether a server answers as it should, before and after it is measured. */

import type { Request } from './load.ts';

/** One request. @returns the body. @throws Error if the status is another */
export async function askOnce(
  port: number,
  { method, path, headers, body }: Request,
  status: number,
): Promise<string> {
  const given = method === 'POST' ? { 'X-Request-ID': crypto.randomUUID() } : {};
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { ...headers, ...given },
    ...(body === undefined ? {} : { body }),
  });
  const text = await response.text();
  if (response.status !== status)
    throw new Error(`${method} ${path} was answered ${response.status}: ${text}`);
  return text;
}
