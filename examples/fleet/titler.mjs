// An agent built with JavaScript's @a2a-js/sdk: makes a title of a text's first words, and asks for a text if there is
// none. `titler.mjs PORT`, 0 for a free one; prints the port first.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { AGENT_CARD_PATH, AgentCard, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from "@a2a-js/sdk";
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } from "@a2a-js/sdk/server/express";
import express from "express";

// A title of more words is a sentence.
const MOST_WORDS = 6;

class Titler {
  async execute({ taskId, contextId, userMessage, task }, bus) {
    const now = () => new Date().toISOString();
    const status = (state, text) => {
      const message = { messageId: randomUUID(), role: "ROLE_AGENT", parts: [{ text }], taskId, contextId };
      const told = { state: `TASK_STATE_${state}`, timestamp: now(), ...(text && { message }) };
      bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ taskId, contextId, status: told })));
    };
    const submitted = { id: taskId, contextId, status: { state: "TASK_STATE_SUBMITTED", timestamp: now() } };
    bus.publish(AgentEvent.task(task ?? { ...Task.fromJSON(submitted), history: [userMessage] }));
    status("WORKING");
    const said = userMessage.parts.map(({ content }) => (content.$case === "text" ? content.value : "")).join(" ");
    const words = said.split(/\s+/).filter(Boolean).slice(0, MOST_WORDS);
    if (words.length < 2) {
      status("INPUT_REQUIRED", "Which text shall I make a title of? It needs two words at least.");
    } else {
      const text = words.map((word) => word[0].toUpperCase() + word.slice(1)).join(" ");
      const artifact = { artifactId: "title", name: "title", parts: [{ text }] };
      bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON({ taskId, contextId, artifact })));
      status("COMPLETED");
    }
    bus.finished();
  }

  async cancelTask() {}
}

function application(address) {
  const bindings = [
    ["jsonrpc", "JSONRPC"],
    ["rest", "HTTP+JSON"],
  ];
  const card = AgentCard.fromJSON({
    name: "Titler",
    description: "Makes a title of a text",
    version: "1.0.0",
    supportedInterfaces: bindings.map(([path, protocolBinding]) => ({
      url: `${address}/${path}`,
      protocolBinding,
      protocolVersion: "1.0",
    })),
    capabilities: { streaming: true },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [{ id: "title", name: "Title", description: "Makes a title of the first words", tags: ["text"] }],
  });
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Titler());
  const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
  const app = express();
  app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
  app.use("/jsonrpc", jsonRpcHandler(options));
  app.use("/rest", restHandler(options));
  return app;
}

const server = createServer();
server.listen(Number(process.argv[2]), "127.0.0.1", () => {
  const { port } = server.address();
  server.on("request", application(`http://127.0.0.1:${port}`));
  console.log(port);
});
