// An agent built with this SDK, for our client to call: `server.mjs PORT`, 0 for a free one. Prints the port first.
//
// What it does is in the first word of a message: `echo`, `reply`, `stream COUNT`, `ask`, `fail`, `wait`, `file`, `data`
// or `inspect`, which tells the bytes of a file in hexadecimal and returns them in reverse. Each interface has a card of its
// own as well, under `/only/INTERFACE`.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { AGENT_CARD_PATH } from "@a2a-js/sdk";
import {
  DefaultPushNotificationSender,
  DefaultRequestHandler,
  DefaultExecutionEventBusManager,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
} from "@a2a-js/sdk/server";
import { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } from "@a2a-js/sdk/server/express";
import express from "express";
import { noted } from "../executions.mjs";

// What the card says that it takes and gives: texts, files and data.
const MODES = ["text/plain", "image/png", "application/octet-stream", "application/json"];

const textPart = (text) => ({ kind: "text", text });
const now = () => new Date().toISOString();

class Behaviours {
  /** What ends the wait of a task. */
  #waiting = new Map();

  execute(context, bus) {
    return noted(context, () => this.#behave(context, bus));
  }

  async #behave({ taskId, contextId, userMessage, task }, bus) {
    const said = userMessage.parts.map((part) => (part.kind === "text" ? part.text : "")).join("");
    const [word, rest] = [said.split(" ")[0], said.slice(said.split(" ")[0].length + 1)];
    const message = (text) => ({
      kind: "message",
      messageId: randomUUID(),
      role: "agent",
      parts: [textPart(text)],
      contextId,
    });
    const status = (state, text, final = true) =>
      bus.publish({
        kind: "status-update",
        taskId,
        contextId,
        status: { state, timestamp: now(), ...(text && { message: { ...message(text), taskId } }) },
        final,
      });
    const artifact = (artifactId, parts, fields) =>
      bus.publish({ kind: "artifact-update", taskId, contextId, artifact: { artifactId, parts }, ...fields });

    if (word === "reply") {
      bus.publish(message(rest));
      bus.finished();
      return;
    }
    if (!task) {
      const history = [userMessage];
      bus.publish({ kind: "task", id: taskId, contextId, status: { state: "submitted", timestamp: now() }, history });
    }
    if (task?.status.state === "input-required") {
      artifact("greeting", [textPart(`hello ${said}`)]);
      status("completed");
      bus.finished();
      return;
    }
    status("working", undefined, false);
    switch (word) {
      case "echo":
        artifact("echo", [textPart(rest)]);
        status("completed");
        break;
      case "stream":
        for (let number = 1; number <= Number(rest); number++) {
          const fields = { append: number > 1, lastChunk: number === Number(rest) };
          artifact("chunks", [textPart(`chunk ${number}\n`)], fields);
        }
        status("completed");
        break;
      case "ask":
        status("input-required", "what is your name?");
        break;
      case "fail":
        status("failed", "it did not work");
        break;
      case "wait":
        await new Promise((resolve) => this.#waiting.set(taskId, resolve));
        status("canceled");
        break;
      case "file":
      case "data":
        artifact("returned", userMessage.parts.slice(1));
        status("completed");
        break;
      case "inspect": {
        const content = Buffer.from(userMessage.parts[1].file.bytes, "base64");
        const bytes = Buffer.from(content).reverse().toString("base64");
        artifact("inspected", [textPart(content.toString("hex")), { kind: "file", file: { bytes } }]);
        status("completed");
        break;
      }
      default:
        status("rejected", `${word} is nothing this agent does`);
    }
    bus.finished();
  }

  async cancelTask(taskId) {
    this.#waiting.get(taskId)?.();
    this.#waiting.delete(taskId);
  }
}

function application(address) {
  const card = {
    name: "Behaviours",
    description: "Does what the first word of a message says",
    protocolVersion: "0.3.0",
    version: "1.0.0",
    url: `${address}/jsonrpc`,
    preferredTransport: "JSONRPC",
    additionalInterfaces: [
      { url: `${address}/jsonrpc`, transport: "JSONRPC" },
      { url: `${address}/rest`, transport: "HTTP+JSON" },
    ],
    capabilities: { streaming: true, pushNotifications: true },
    defaultInputModes: MODES,
    defaultOutputModes: MODES,
    skills: [{ id: "behave", name: "Behave", description: "What is asked for", tags: ["test"] }],
  };
  const hooks = new InMemoryPushNotificationStore();
  const requestHandler = new DefaultRequestHandler(
    card,
    new InMemoryTaskStore(),
    new Behaviours(),
    new DefaultExecutionEventBusManager(),
    hooks,
    new DefaultPushNotificationSender(hooks),
  );
  const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
  const app = express();
  app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
  app.use("/jsonrpc", jsonRpcHandler(options));
  app.use("/rest", restHandler(options));
  for (const { url, transport } of card.additionalInterfaces) {
    const alone = { ...card, url, preferredTransport: transport, additionalInterfaces: [] };
    app.get(`/only/${url.split("/").at(-1)}-0.3/${AGENT_CARD_PATH}`, (_, response) => response.json(alone));
  }
  return app;
}

const server = createServer();
server.listen(Number(process.argv[2]), "127.0.0.1", () => {
  const { port } = server.address();
  server.on("request", application(`http://127.0.0.1:${port}`));
  console.log(port);
});
