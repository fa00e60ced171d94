// @a2a-js/sdk 0.3.14 as a client of Switchboard, the way its users hold it: a card from the agent's address, a client
// from ClientFactory, JSON-RPC or HTTP+JSON by the client's own choice.

import { randomUUID } from "node:crypto";
import {
  AuthenticatedExtendedCardNotConfiguredError,
  DefaultAgentCardResolver,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
  withA2AExtensions,
  ServiceParameters,
} from "@a2a-js/sdk/client";
import {
  COUNTS,
  collect,
  equal,
  failsWith,
  first,
  holds,
  main,
  numbered,
  streamFailsWith,
  test,
  until,
} from "../runner.mjs";
import "./files.mjs";
import "./push.mjs";
import { Switchboard, TRANSPORTS, chunks, message, send, stream, text } from "./switchboard.mjs";

test("card", async (switchboard) => {
  const card = await new DefaultAgentCardResolver().resolve(`${switchboard.address}/a2a/echo/`);
  equal([card.name, card.skills.map((skill) => skill.id)], ["Echo", ["echo"]]);
  equal([card.capabilities.streaming, card.capabilities.pushNotifications], [true, true]);
  const transports = { [card.preferredTransport]: card.url };
  for (const { transport, url } of card.additionalInterfaces) transports[transport] = url;
  const url = transports[TRANSPORTS[switchboard.binding]];
  holds(url.startsWith(`${switchboard.address}/a2a/echo`), `the card points to ${url}`);
});

test("root-card", async (switchboard) => {
  const client = await switchboard.factory().createFromUrl(switchboard.address);
  equal((await send(client, "hi")).status.state, "input-required");
});

test(
  "extended-card",
  async (switchboard) => {
    const client = await switchboard.client("echo");
    equal((await client.getAgentCard()).name, "Echo");
    const path = switchboard.binding === "rest" ? "/a2a/echo/v1/card" : "/a2a/echo/jsonrpc";
    equal(switchboard.lastRequest.url.pathname, path);
  },
  { keyed: true },
);

test("version", async (switchboard) => {
  // No version header is version 0.3, and the answer is in its words.
  const client = await switchboard.client("probe");
  const task = await send(client, "hello");
  equal(switchboard.lastRequest.headers.has("a2a-version"), false);
  const body = await switchboard.lastResponse.json();
  if (switchboard.binding === "jsonrpc") {
    equal([body.result.kind, body.result.status.state], ["task", "completed"]);
  } else {
    equal(body.task.status.state, "TASK_STATE_COMPLETED");
  }
  equal([task.kind, task.status.state], ["task", "completed"]);
});

test("extension-header", async (switchboard) => {
  const client = await switchboard.client("probe");
  const offered = (await client.getAgentCard()).capabilities.extensions[0].uri;
  const wanted = withA2AExtensions(offered, "https://example.com/not-known");
  await send(client, "hello", undefined, { serviceParameters: ServiceParameters.create(wanted) });
  equal(switchboard.lastResponse.headers.get("x-a2a-extensions"), offered);
});

test("send-blocking", async (switchboard) => {
  const task = await send(await switchboard.client("probe"), "sleep:300");
  equal([task.status.state, text(task.status.message.parts)], ["completed", "slept for 300 ms"]);
  holds(task.contextId && task.status.timestamp, "the task has a context and a time");
});

test("send-polling", async (switchboard) => {
  const client = await switchboard.client("probe", { polling: true });
  const task = await send(client, "sleep:500");
  holds(["submitted", "working"].includes(task.status.state), `the task is ${task.status.state}`);
  const done = await until(
    () => client.getTask({ id: task.id }),
    (task) => task.status.state === "completed",
  );
  equal(text(done.status.message.parts), "slept for 500 ms");
});

test("message-reply", async (switchboard) => {
  const reply = await send(await switchboard.client("probe"), "message");
  equal([reply.kind, reply.role, text(reply.parts)], ["message", "agent", "a direct message"]);
});

test("stream", async (switchboard) => {
  const events = await collect(stream(await switchboard.client("probe"), "stream:200"));
  equal(events[0].kind, "task");
  equal(chunks(events), numbered(200));
  const states = events.filter((event) => event.kind === "status-update");
  equal(states.map((event) => event.final).indexOf(true), states.length - 1);
  equal([events.at(-1).kind, events.at(-1).status.state], ["status-update", "completed"]);
});

test("stream-message-reply", async (switchboard) => {
  const events = await collect(stream(await switchboard.client("probe"), "message"));
  equal(
    events.map((event) => [event.kind, text(event.parts)]),
    [["message", "a direct message"]],
  );
});

test("stream-input-required", async (switchboard) => {
  const client = await switchboard.client("probe");
  const asked = await collect(stream(client, "ask"));
  equal([asked.at(-1).status.state, asked.at(-1).final], ["input-required", true]);
  const { status } = (await collect(stream(client, "again", asked[0]))).at(-1);
  equal([status.state, text(status.message.parts)], ["completed", "you said: again"]);
});

test("resubscribe", async (switchboard) => {
  const client = await switchboard.client("probe");
  const connection = new AbortController();
  const task = await first(stream(client, "hold", undefined, { signal: connection.signal }));
  connection.abort();

  const events = client.resubscribeTask({ id: task.id });
  const again = (await events.next()).value;
  equal([again.kind, again.id], ["task", task.id]);
  await (await switchboard.client("probe")).cancelTask({ id: task.id });
  const rest = await collect(events);
  equal([rest.at(-1).status.state, rest.at(-1).final], ["canceled", true]);
});

test("resubscribe-chunks", async (switchboard) => {
  // The Task that opens the second stream and what follows make the whole, without a gap or a repetition.
  const client = await switchboard.client("probe");
  for (const count of COUNTS) {
    const connection = new AbortController();
    const task = await first(stream(client, `streamy:${count}`, undefined, { signal: connection.signal }));
    connection.abort();
    const events = client.resubscribeTask({ id: task.id });
    const opening = await events.next().catch(() => undefined);
    if (!opening) continue;
    const seen = (opening.value.artifacts ?? []).map((artifact) => text(artifact.parts)).join("");
    return equal(seen + chunks(await collect(events)), numbered(count));
  }
  throw new Error("every stream ended before the second connection was there");
});

test("get", async (switchboard) => {
  const client = await switchboard.client("probe");
  const sent = await client.sendMessage({ message: { ...message("hello"), metadata: { shelf: "b4" } } });
  const task = await client.getTask({ id: sent.id });
  equal([task.id, task.contextId, task.status.state], [sent.id, sent.contextId, "completed"]);
  equal(
    task.artifacts.map((artifact) => [artifact.name, text(artifact.parts)]),
    [["greeting", "hello"]],
  );
  equal([text(task.history[0].parts), task.history[0].metadata], ["hello", { shelf: "b4" }]);
});

test("get-history-length", async (switchboard) => {
  const client = await switchboard.client("guide");
  let task = await send(client, "hi");
  task = await send(client, "Ada", task);
  task = await send(client, "tasks", task);
  const whole = await client.getTask({ id: task.id });
  holds(whole.history.length >= 3, `the history has ${whole.history.length} messages`);
  equal((await client.getTask({ id: task.id, historyLength: 1 })).history, whole.history.slice(-1));
});

test("send-history-length", async (switchboard) => {
  const client = await switchboard.client("probe");
  const asked = await send(client, "ask");
  const task = await client.sendMessage({ message: message("again", asked), configuration: { historyLength: 1 } });
  equal(task.history.length, 1);
});

test("cancel", async (switchboard) => {
  const client = await switchboard.client("probe", { polling: true });
  const task = await send(client, "hold");
  const canceled = await client.cancelTask({ id: task.id });
  equal([canceled.id, canceled.status.state], [task.id, "canceled"]);
  equal((await client.getTask({ id: task.id })).status.state, "canceled");
});

test("cancel-parked", async (switchboard) => {
  const client = await switchboard.client("probe");
  const task = await send(client, "ask");
  equal((await client.cancelTask({ id: task.id })).status.state, "canceled");
});

test("multi-turn", async (switchboard) => {
  const client = await switchboard.client("guide");
  let asked = await send(client, "hi");
  equal([asked.status.state, text(asked.status.message.parts)], ["input-required", "Hello! What is your name?"]);
  asked = await send(client, "Ada", asked);
  equal(asked.status.state, "input-required");
  holds(text(asked.status.message.parts).includes("Nice to meet you, Ada"), "the guide has learnt the name");
  const told = await send(client, "streams", asked);
  equal([told.id, told.status.state], [asked.id, "completed"]);
  holds(text(told.status.message.parts).includes("Last-Event-ID"), "the guide has explained streams");
});

test("auth-required", async (switchboard) => {
  const client = await switchboard.client("probe");
  const asked = await send(client, "auth");
  equal(asked.status.state, "auth-required");
  const done = await send(client, "signed in", asked);
  equal([done.status.state, text(done.status.message.parts)], ["completed", "you said: signed in"]);
});

test("endings", async (switchboard) => {
  const client = await switchboard.client("probe");
  for (const [command, state] of [
    ["reject", "rejected"],
    ["err", "failed"],
    ["panic", "failed"],
    ["silent", "failed"],
  ]) {
    equal([command, (await send(client, command)).status.state], [command, state]);
  }
});

test("parts-received", async (switchboard) => {
  const client = await switchboard.client("probe");
  const [file] = (await send(client, "file")).artifacts[0].parts;
  equal(
    [Buffer.from(file.file.bytes, "base64").toString(), file.file.mimeType],
    ["a file from the probe\n", "text/plain"],
  );
  const [data] = (await send(client, "data")).artifacts[0].parts;
  equal([data.data.probe, data.data.numbers], [true, [1, 2, 3]]);
});

test("parts-echoed", async (switchboard) => {
  const bytes = Buffer.from(Uint8Array.from({ length: 256 }, (_, index) => index)).toString("base64");
  const sent = [
    { kind: "text", text: "grüße 🦀" },
    { kind: "file", file: { bytes, mimeType: "application/octet-stream", name: "all.bin" } },
    { kind: "file", file: { uri: "https://example.com/a.png", mimeType: "image/png", name: "a.png" } },
    { kind: "data", data: { integer: 7, fraction: 0.5, nested: { list: [true, null, "x"] } } },
  ];
  const parts = (await send(await switchboard.client("echo"), sent)).artifacts[0].parts;
  equal(
    parts.map((part) => part.kind),
    ["text", "file", "file", "data"],
  );
  equal(parts[0].text, sent[0].text);
  equal([parts[1].file.bytes, parts[1].file.mimeType], [bytes, "application/octet-stream"]);
  equal([parts[2].file.uri, parts[2].file.mimeType], ["https://example.com/a.png", "image/png"]);
  equal(parts[3].data, sent[3].data);
});

test("large-artifact", async (switchboard) => {
  const events = await collect(stream(await switchboard.client("probe"), "big:1000000"));
  equal(chunks(events).length, 1_000_000);
});

test("error-task-not-found", async (switchboard) => {
  const client = await switchboard.client("probe");
  const unknown = { id: randomUUID(), contextId: undefined };
  await failsWith(TaskNotFoundError, () => client.getTask({ id: unknown.id }));
  await failsWith(TaskNotFoundError, () => client.cancelTask({ id: unknown.id }));
  await failsWith(TaskNotFoundError, () => send(client, "hello", unknown));
});

test("error-not-cancelable", async (switchboard) => {
  const client = await switchboard.client("probe");
  const task = await send(client, "hello");
  await failsWith(TaskNotCancelableError, () => client.cancelTask({ id: task.id }));
});

test("error-send-to-finished", async (switchboard) => {
  const client = await switchboard.client("probe");
  const task = await send(client, "hello");
  await failsWith(UnsupportedOperationError, () => send(client, "hello", task));
});

test("error-stream-to-finished", async (switchboard) => {
  const client = await switchboard.client("probe");
  const task = await send(client, "hello");
  await streamFailsWith(UnsupportedOperationError, () => first(stream(client, "hello", task)));
});

test("error-resubscribe", async (switchboard) => {
  const client = await switchboard.client("probe");
  const resubscribe = (id) => () => first(client.resubscribeTask({ id }));
  await streamFailsWith(TaskNotFoundError, resubscribe(randomUUID()));
  const task = await send(client, "hello");
  await streamFailsWith(UnsupportedOperationError, resubscribe(task.id));
});

test(
  "error-method-not-found",
  async (switchboard) => {
    const { transport } = await switchboard.client("probe");
    const error = await failsWith(Error, () => transport.callExtensionMethod("tasks/undo", {}, 7));
    equal(error.errorResponse.error.code, -32601);
  },
  { only: "jsonrpc" },
);

test("error-no-extended-card", async (switchboard) => {
  // An open server says so on its card, and says it again to a client with a card from other times.
  const card = await new DefaultAgentCardResolver().resolve(`${switchboard.address}/a2a/echo/`);
  equal(card.supportsAuthenticatedExtendedCard, false);
  const older = { ...card, supportsAuthenticatedExtendedCard: true };
  const client = await switchboard.factory().createFromAgentCard(older);
  await failsWith(AuthenticatedExtendedCardNotConfiguredError, () => client.getAgentCard());
});

await main((address, binding) => new Switchboard(address, binding));
