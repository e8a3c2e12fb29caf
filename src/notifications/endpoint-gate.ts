/** How many messages one instance sends to an endpoint at the same time. */

export interface EndpointGate {
  /**
   * Asks to send a message. After `send`, `leave` must follow.
   *
   * `busy`: other messages are being sent; try again soon. `failing`: the last attempts have failed, and another one is under way.
   */
  enter(endpoint: string): 'send' | 'busy' | 'failing';
  leave(endpoint: string, succeeded: boolean): void;
}

/** For an endpoint that works. */
const maxConcurrent = 8;
/** After so many failures in a row, messages are sent one at a time, so that an endpoint that hangs does not occupy the instance. */
const failuresUntilFailing = 3;

interface Endpoint {
  sending: number;
  failures: number;
}

/** The number of endpoints is bounded by the settings of the clients, because URLs are matched by their origin. */
export function createEndpointGate(): EndpointGate {
  const endpoints = new Map<string, Endpoint>();
  return {
    enter(name) {
      const endpoint = endpoints.get(name) ?? { sending: 0, failures: 0 };
      endpoints.set(name, endpoint);
      const isFailing = endpoint.failures >= failuresUntilFailing;
      if (endpoint.sending >= (isFailing ? 1 : maxConcurrent)) return isFailing ? 'failing' : 'busy';
      endpoint.sending += 1;
      return 'send';
    },
    leave(name, succeeded) {
      const endpoint = endpoints.get(name);
      if (!endpoint) return;
      endpoint.sending -= 1;
      endpoint.failures = succeeded ? 0 : endpoint.failures + 1;
      if (endpoint.sending === 0 && endpoint.failures === 0) endpoints.delete(name);
    },
  };
}
