/** Speaks to the gateway: orders and questions, and the stream of events. The token goes in a header, never in a URL. */

/** What the gateway said no to, in its words. */
export class Refused extends Error {
  constructor(status, words, answer) {
    super(words);
    this.status = status;
    this.answer = answer;
  }
}

const key = 'penstock-token';
export const keptToken = () => sessionStorage.getItem(key);
export const keepToken = (token) => sessionStorage.setItem(key, token);
export const forgetToken = () => sessionStorage.removeItem(key);

const fields = () => ({ Authorization: `Bearer ${keptToken() ?? ''}` });

/** For whatever an operator waits for: a pre-flight takes up to 5 s. */
const patienceMs = 15_000;

/** @returns the answer; `undefined` if there is none. @throws Refused, or Error with a sentence for the operator */
export async function ask(method, path, body) {
  const response = await fetch(`/api${path}`, {
    method,
    headers: { ...fields(), ...(body && { 'Content-Type': 'application/json' }) },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(patienceMs),
  }).catch(() => {
    const after = method === 'GET' ? '' : ' Whether it was done is not known: look at the audit log.';
    throw new Error(`No answer came from this instance.${after}`);
  });
  const text = await response.text().catch(() => '');
  const answer = text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : undefined;
  if (!response.ok) throw new Refused(response.status, answer?.error ?? `Status ${response.status}.`, answer);
  return answer;
}

/** Events come every second. */
const silenceMs = 5_000;
const longestPauseMs = 5_000;

/**
 * Reads the events, and again whenever the stream ends, until the token is refused or it is told to stop.
 *
 * @param told `event(name, data)`, `lost(why)`, `refused()`
 * @returns stops it
 */
export function follow(told) {
  let stopped = false;
  let pauseMs = 500;
  let current;

  async function once() {
    current = new AbortController();
    let silence = setTimeout(() => current.abort(), silenceMs);
    try {
      const response = await fetch('/api/events', { headers: fields(), signal: current.signal });
      if (response.status === 401) {
        stopped = true;
        return told.refused();
      }
      if (!response.ok) return (await response.json()).error ?? 'The instance is not ready.';
      for await (const { name, data } of eventsIn(response.body)) {
        clearTimeout(silence);
        if (stopped) return;
        if (name === 'end') return data.why;
        pauseMs = 500;
        told.event(name, data);
        silence = setTimeout(() => current.abort(), silenceMs);
      }
      return 'The connection has ended.';
    } catch {
      return 'The instance does not answer.';
    } finally {
      clearTimeout(silence);
      current.abort();
    }
  }

  async function forEver() {
    while (!stopped) {
      const why = await once();
      if (stopped) return;
      told.lost(why);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      pauseMs = Math.min(pauseMs * 2, longestPauseMs);
    }
  }
  forEver();

  return () => {
    stopped = true;
    current?.abort();
  };
}

async function* eventsIn(body) {
  let rest = '';
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + piece).split('\n\n');
    rest = parts.pop();
    for (const part of parts) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(part) ?? [];
      if (name) yield { name, data: JSON.parse(data) };
    }
  }
}
