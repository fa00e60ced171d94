// An agent built with this SDK, for our client to call: `server.mjs PORT`, 0 for a free one. Prints the port first.
//
// What it does is in the first word of a message: `echo`, `reply`, `stream COUNT`, `ask`, `fail`, `wait`, `file`, `data`
// or `inspect`, which tells the bytes of a file in hexadecimal and returns them in reverse. Each interface has a card of its
// own as well, under `/only/INTERFACE`.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import {
  AGENT_CARD_PATH,
  AgentCard,
  Message,
  Task,
  TaskArtifactUpdateEvent,
  TaskState,
  TaskStatusUpdateEvent,
} from "@a2a-js/sdk";
import { createLegacyAwarePushNotificationSender } from "@a2a-js/sdk/compat/v0_3/server";
import {
  AgentEvent,
  DefaultExecutionEventBusManager,
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
} from "@a2a-js/sdk/server";
import { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } from "@a2a-js/sdk/server/express";
import express from "express";
import { noted } from "../executions.mjs";

// What the card says that it takes and gives: texts, files and data.
const MODES = ["text/plain", "image/png", "application/octet-stream", "application/json"];

const now = () => new Date().toISOString();

class Behaviours {
  /** What a cancellation does to a task that waits. */
  #waiting = new Map();

  execute(context, bus) {
    return noted(context, () => this.#behave(context, bus));
  }

  async #behave({ taskId, contextId, userMessage, task }, bus) {
    const said = userMessage.parts.map(({ content }) => (content.$case === "text" ? content.value : "")).join("");
    const [word, rest] = [said.split(" ")[0], said.slice(said.split(" ")[0].length + 1)];
    const message = (text, fields) => ({
      messageId: randomUUID(),
      role: "ROLE_AGENT",
      parts: [{ text }],
      contextId,
      ...fields,
    });
    const status = (state, text) =>
      bus.publish(
        AgentEvent.statusUpdate(
          TaskStatusUpdateEvent.fromJSON({
            taskId,
            contextId,
            status: {
              state: `TASK_STATE_${state}`,
              timestamp: now(),
              ...(text && { message: message(text, { taskId }) }),
            },
          }),
        ),
      );
    const artifact = (artifactId, parts, fields) =>
      bus.publish(
        AgentEvent.artifactUpdate(
          TaskArtifactUpdateEvent.fromJSON({ taskId, contextId, artifact: { artifactId, parts }, ...fields }),
        ),
      );

    if (word === "reply") {
      bus.publish(AgentEvent.message(Message.fromJSON(message(rest))));
      bus.finished();
      return;
    }
    const submitted = { id: taskId, contextId, status: { state: "TASK_STATE_SUBMITTED", timestamp: now() } };
    // A stream has to begin with a task, one that answers a question too.
    bus.publish(AgentEvent.task(task ?? { ...Task.fromJSON(submitted), history: [userMessage] }));
    if (task?.status.state === TaskState.TASK_STATE_INPUT_REQUIRED) {
      this.#waiting.delete(taskId);
      artifact("greeting", [{ text: `hello ${said}` }]);
      status("COMPLETED");
      bus.finished();
      return;
    }
    status("WORKING");
    switch (word) {
      case "echo":
        artifact("echo", [{ text: rest }]);
        status("COMPLETED");
        break;
      case "stream":
        for (let number = 1; number <= Number(rest); number++) {
          const fields = { append: number > 1, lastChunk: number === Number(rest) };
          artifact("chunks", [{ text: `chunk ${number}\n` }], fields);
        }
        status("COMPLETED");
        break;
      case "ask":
        // The SDK expects this of the agent, which is not at work then.
        this.#waiting.set(taskId, () => status("CANCELED"));
        status("INPUT_REQUIRED", "what is your name?");
        break;
      case "fail":
        status("FAILED", "it did not work");
        break;
      case "wait":
        await new Promise((resolve) => this.#waiting.set(taskId, resolve));
        status("CANCELED");
        break;
      case "file":
      case "data":
        artifact("returned", Message.toJSON(userMessage).parts.slice(1));
        status("COMPLETED");
        break;
      case "inspect": {
        const content = Buffer.from(userMessage.parts[1].content.value);
        const raw = Buffer.from(content).reverse().toString("base64");
        artifact("inspected", [{ text: content.toString("hex") }, { raw }]);
        status("COMPLETED");
        break;
      }
      default:
        status("REJECTED", `${word} is nothing this agent does`);
    }
    bus.finished();
  }

  async cancelTask(taskId) {
    this.#waiting.get(taskId)?.();
    this.#waiting.delete(taskId);
  }
}

function application(address) {
  const bindings = [
    ["jsonrpc", "JSONRPC"],
    ["rest", "HTTP+JSON"],
  ];
  const card = AgentCard.fromJSON({
    name: "Behaviours",
    description: "Does what the first word of a message says",
    version: "1.0.0",
    supportedInterfaces: ["1.0", "0.3"].flatMap((protocolVersion) =>
      bindings.map(([path, protocolBinding]) => ({ url: `${address}/${path}`, protocolBinding, protocolVersion })),
    ),
    capabilities: { streaming: true, pushNotifications: true },
    defaultInputModes: MODES,
    defaultOutputModes: MODES,
    skills: [{ id: "behave", name: "Behave", description: "What is asked for", tags: ["test"] }],
  });
  const hooks = new InMemoryPushNotificationStore();
  const requestHandler = new DefaultRequestHandler(
    card,
    new InMemoryTaskStore(),
    new Behaviours(),
    new DefaultExecutionEventBusManager(),
    hooks,
    createLegacyAwarePushNotificationSender(hooks),
  );
  const legacyCompat = { enabled: true };
  const options = { requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat };
  const app = express();
  app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler, legacyCompat }));
  app.use("/jsonrpc", jsonRpcHandler(options));
  app.use("/rest", restHandler(options));
  for (const offered of card.supportedInterfaces) {
    const alone = AgentCard.toJSON({ ...card, supportedInterfaces: [offered] });
    const name = `${offered.url.split("/").at(-1)}-${offered.protocolVersion}`;
    app.get(`/only/${name}/${AGENT_CARD_PATH}`, (_, response) => response.json(alone));
  }
  return app;
}

const server = createServer();
server.listen(Number(process.argv[2]), "127.0.0.1", () => {
  const { port } = server.address();
  server.on("request", application(`http://127.0.0.1:${port}`));
  console.log(port);
});
