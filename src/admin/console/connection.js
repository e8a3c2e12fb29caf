/** Calls the admin API and reads its event stream. The token is sent in a header, never in a URL. */

/** The gateway answered with an error status; `message` is its error text, `body` its JSON. */
export class ApiError extends Error {
  constructor(status, message, body) {
    super(message);
    this.status = status;
    this.body = body;
  }

  /** Whether this version of the gateway does not have the route; other 404 responses name what is unknown. */
  get isUnknownPath() {
    return this.status === 404 && this.body?.error === 'Not found.';
  }
}

const key = 'penstock-token';
export const storedToken = () => sessionStorage.getItem(key);
export const storeToken = (token) => sessionStorage.setItem(key, token);
export const clearToken = () => sessionStorage.removeItem(key);

/** Without a token, the session's cookie or a proxy authenticates the operator. */
const authorization = () => {
  const token = storedToken();
  return token === null ? {} : { Authorization: `Bearer ${token}` };
};

/** Longer than a pre-flight, which takes up to 5 s. */
const timeoutMs = 15_000;

/** @returns the JSON of the response; `undefined` if it is empty. @throws ApiError, or Error with a readable message */
export async function callApi(method, path, body, maxMs = timeoutMs) {
  const text = await request(method, path, { body, maxMs });
  const json = parseJson(text);
  if (text !== '' && json === undefined) throw new Error('The response is not JSON: is it from a proxy?');
  return json;
}

/** @returns the text of a response in this media type. @throws ApiError, or Error with a readable message */
export const readText = (path, mediaType) => request('GET', path, { accept: mediaType });

async function request(method, path, { body, accept = 'application/json', maxMs = timeoutMs }) {
  const advice = method === 'GET' ? '' : ' The outcome is unknown: check the audit log.';
  const noResponse = () => {
    throw new Error(`This instance did not respond.${advice}`);
  };
  const response = await fetch(`/api${path}`, {
    method,
    headers: { Accept: accept, ...authorization(), ...(body && { 'Content-Type': 'application/json' }) },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(maxMs),
  }).catch(noResponse);
  const text = await response.text().catch(noResponse);
  if (response.ok) return text;
  const json = parseJson(text);
  throw new ApiError(response.status, json?.error ?? `Status ${response.status}.`, json);
}

/** @returns `undefined` if the text is not JSON: empty, or the page of a proxy */
function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Longest accepted time without an event; the gateway sends one every second. */
const maxSilenceMs = 5_000;
const firstRetryDelayMs = 500;
const maxRetryDelayMs = 5_000;

/**
 * Reads the event stream and reconnects whenever it ends, until the gateway rejects the token or the caller stops it.
 *
 * @param listener `onEvent(name, data)`, `onDisconnect(reason)`, `onUnauthorized()`
 * @returns a function that stops reading
 */
export function followEvents(listener) {
  let stopped = false;
  let retryDelayMs = firstRetryDelayMs;
  let current;

  /** @returns the reason for the end of the stream */
  async function readStream() {
    current = new AbortController();
    let silence = setTimeout(() => current.abort(), maxSilenceMs);
    try {
      const response = await fetch('/api/events', { headers: authorization(), signal: current.signal });
      if (response.status === 401) {
        stopped = true;
        return listener.onUnauthorized();
      }
      if (!response.ok) return (await response.json()).error ?? 'The instance is not ready.';
      for await (const { name, data } of parseEvents(response.body)) {
        clearTimeout(silence);
        if (stopped) return;
        if (name === 'end') return data.why;
        retryDelayMs = firstRetryDelayMs;
        listener.onEvent(name, data);
        silence = setTimeout(() => current.abort(), maxSilenceMs);
      }
      return 'The connection was closed.';
    } catch {
      return 'The instance is not responding.';
    } finally {
      clearTimeout(silence);
      current.abort();
    }
  }

  async function reconnect() {
    while (!stopped) {
      const reason = await readStream();
      if (stopped) return;
      listener.onDisconnect(reason);
      await new Promise((resolve) => setTimeout(resolve, retryDelayMs));
      retryDelayMs = Math.min(retryDelayMs * 2, maxRetryDelayMs);
    }
  }
  reconnect();

  return () => {
    stopped = true;
    current?.abort();
  };
}

async function* parseEvents(body) {
  let buffer = '';
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    const parts = (buffer + chunk).split('\n\n');
    buffer = parts.pop();
    for (const part of parts) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(part) ?? [];
      if (name) yield { name, data: JSON.parse(data) };
    }
  }
}
