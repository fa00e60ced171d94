// How the tests of a JavaScript SDK reach a server, with the last exchange in view.

import { KEY } from "./runner.mjs";

export const TRANSPORTS = { jsonrpc: "JSONRPC", rest: "HTTP+JSON" };

const showKey = {
  headers: async () => ({ Authorization: `Bearer ${KEY}` }),
  shouldRetryWithHeaders: async () => undefined,
};

/**
 * A server and the binding to reach it by, and the version where the tests choose it. A subclass has its SDK's
 * `factory(clientConfig)`.
 */
export class Exchange {
  constructor(address, binding, version) {
    Object.assign(this, { address, binding, version });
    this.fetch = async (url, init) => {
      const response = await fetch(url, init);
      this.lastRequest = { url: new URL(url), headers: new Headers(init?.headers) };
      const streams = response.headers.get("content-type")?.startsWith("text/event-stream");
      // A copy of a stream would have to be read as well, or hold up the original.
      this.lastResponse = streams ? response : response.clone();
      return response;
    };
  }

  /** What an SDK is to fetch with; `authenticating` is its wrapper that shows a key. */
  fetchWith(authenticating) {
    return KEY ? authenticating(this.fetch, showKey) : this.fetch;
  }

  // The card's path is taken relative to the address, which is why it ends in a slash.
  client(agent, clientConfig) {
    return this.factory(clientConfig).createFromUrl(`${this.address}/a2a/${agent}/`);
  }
}
