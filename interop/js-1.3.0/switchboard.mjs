// A server as the tests of this SDK see it: how they reach it, what they say to it, how they read its answers.

import { randomUUID } from "node:crypto";
import { SendMessageRequest, TaskState } from "@a2a-js/sdk";
import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
  createAuthenticatingFetchWithRetry,
} from "@a2a-js/sdk/client";
import { KEY } from "../runner.mjs";

export const TRANSPORTS = { jsonrpc: "JSONRPC", rest: "HTTP+JSON" };

const showKey = {
  headers: async () => ({ Authorization: `Bearer ${KEY}` }),
  shouldRetryWithHeaders: async () => undefined,
};

/** A server and the binding to reach it by, with the last exchange in view. */
export class Switchboard {
  constructor(address, binding) {
    this.address = address;
    this.binding = binding;
    this.fetch = async (url, init) => {
      const response = await fetch(url, init);
      this.lastRequest = { url: new URL(url), headers: new Headers(init?.headers) };
      const streams = response.headers.get("content-type")?.startsWith("text/event-stream");
      // A copy of a stream would have to be read as well, or hold up the original.
      this.lastResponse = streams ? response : response.clone();
      return response;
    };
  }

  factory(clientConfig) {
    const fetchImpl = KEY ? createAuthenticatingFetchWithRetry(this.fetch, showKey) : this.fetch;
    const options = { fetchImpl, legacyCompat: { enabled: true } };
    return new ClientFactory(
      ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
        transports: [new JsonRpcTransportFactory(options), new RestTransportFactory(options)],
        preferredTransports: [TRANSPORTS[this.binding]],
        cardResolver: new DefaultAgentCardResolver({ legacyCompat: { enabled: true } }),
        clientConfig,
      }),
    );
  }

  // The card's path is taken relative to the address, which is why it ends in a slash.
  client(agent, clientConfig) {
    return this.factory(clientConfig).createFromUrl(`${this.address}/a2a/${agent}/`);
  }
}

export function request(parts, task, { configuration, ...fields } = {}) {
  return SendMessageRequest.fromJSON({
    message: {
      messageId: randomUUID(),
      role: "ROLE_USER",
      parts: [parts].flat().map((part) => (typeof part === "string" ? { text: part } : part)),
      ...(task && { taskId: task.id, contextId: task.contextId }),
      ...fields,
    },
    configuration,
  });
}

export const send = (client, parts, task, options) => client.sendMessage(request(parts, task), options);
export const stream = (client, parts, task, options) => client.sendMessageStream(request(parts, task), options);
export const text = (parts) => parts.map(({ content }) => (content.$case === "text" ? content.value : "")).join("");
export const chunks = (events) =>
  events
    .map(({ payload }) => (payload.$case === "artifactUpdate" ? text(payload.value.artifact.parts) : ""))
    .join("");
export const state = (task) => TaskState[task.status.state].replace("TASK_STATE_", "");
