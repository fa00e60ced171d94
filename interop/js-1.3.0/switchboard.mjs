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
import { Exchange, TRANSPORTS } from "../exchange.mjs";

export { TRANSPORTS };

export class Switchboard extends Exchange {
  factory(clientConfig) {
    const fetchImpl = this.fetchWith(createAuthenticatingFetchWithRetry);
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

  async client(agent, clientConfig) {
    if (!this.version) return super.client(agent, clientConfig);
    return this.factory(clientConfig).createFromAgentCard(await this.card(agent));
  }

  /** The card for the version, which decides what the client speaks. */
  async card(agent) {
    const headers = { "A2A-Version": this.version };
    const response = await fetch(`${this.address}/a2a/${agent}/.well-known/agent-card.json`, { headers });
    return response.json();
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
