// A server as the tests of this SDK see it: how they reach it, what they say to it, how they read its answers.

import { randomUUID } from "node:crypto";
import {
  ClientFactory,
  ClientFactoryOptions,
  JsonRpcTransportFactory,
  RestTransportFactory,
  createAuthenticatingFetchWithRetry,
} from "@a2a-js/sdk/client";
import { Exchange, TRANSPORTS } from "../exchange.mjs";

export { TRANSPORTS };

export class Switchboard extends Exchange {
  factory(clientConfig) {
    const fetchImpl = this.fetchWith(createAuthenticatingFetchWithRetry);
    return new ClientFactory(
      ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
        transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })],
        preferredTransports: [TRANSPORTS[this.binding]],
        clientConfig,
      }),
    );
  }
}

export function message(parts, task) {
  return {
    kind: "message",
    messageId: randomUUID(),
    role: "user",
    parts: [parts].flat().map((part) => (typeof part === "string" ? { kind: "text", text: part } : part)),
    ...(task && { taskId: task.id, contextId: task.contextId }),
  };
}

export const send = (client, parts, task, options) => client.sendMessage({ message: message(parts, task) }, options);
export const stream = (client, parts, task, options) =>
  client.sendMessageStream({ message: message(parts, task) }, options);
export const text = (parts) => parts.map((part) => (part.kind === "text" ? part.text : "")).join("");
export const chunks = (events) =>
  events.map((event) => (event.kind === "artifact-update" ? text(event.artifact.parts) : "")).join("");
