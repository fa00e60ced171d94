// @a2a-js/sdk 1.3.0 as a client of Switchboard, the way its users hold it: a card from the agent's address, a client
// from ClientFactory, JSON-RPC or HTTP+JSON by the client's own choice. It speaks 1.0, and 0.3 to a card that has only that.

import { randomUUID } from "node:crypto";
import { ListTasksRequest, Part, Role } from "@a2a-js/sdk";
import { DefaultAgentCardResolver, ServiceParameters, withA2AExtensions } from "@a2a-js/sdk/client";
import {
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from "@a2a-js/sdk/errors";
import { COUNTS, collect, equal, failsWith, first, holds, main, numbered, test, until } from "../runner.mjs";
import "./files.mjs";
import "./push.mjs";
import { Switchboard, TRANSPORTS, chunks, request, send, state, stream, text } from "./switchboard.mjs";

test("card", async (switchboard) => {
  const card = await new DefaultAgentCardResolver().resolve(`${switchboard.address}/a2a/echo/`);
  equal([card.name, card.skills.map((skill) => skill.id)], ["Echo", ["echo"]]);
  equal([card.capabilities.streaming, card.capabilities.pushNotifications], [true, true]);
  const own = card.supportedInterfaces.find(
    (offer) => offer.protocolBinding === TRANSPORTS[switchboard.binding] && offer.protocolVersion === "1.0",
  );
  holds(own.url.startsWith(`${switchboard.address}/a2a/echo`), `the card points to ${own.url}`);
});

test("root-card", async (switchboard) => {
  const client = await switchboard.factory().createFromUrl(switchboard.address);
  equal(state(await send(client, "hi")), "INPUT_REQUIRED");
});

test(
  "extended-card",
  async (switchboard) => {
    const client = await switchboard.client("echo");
    equal((await client.getAgentCard()).name, "Echo");
    const path = switchboard.binding === "rest" ? "/a2a/echo/extendedAgentCard" : "/a2a/echo";
    equal(switchboard.lastRequest.url.pathname, path);
  },
  { keyed: true },
);

test("version", async (switchboard) => {
  // A card with both versions makes this client speak 1.0.
  const client = await switchboard.client("probe");
  await send(client, "hello");
  equal([client.protocolVersion, switchboard.lastRequest.headers.get("a2a-version")], ["1.0", "1.0"]);
  const body = await switchboard.lastResponse.json();
  const { task } = switchboard.binding === "jsonrpc" ? body.result : body;
  equal(task.status.state, "TASK_STATE_COMPLETED");
});

test("version-fallback", async (switchboard) => {
  // The card for version 0.3 makes this client speak 0.3.
  const response = await fetch(`${switchboard.address}/a2a/probe/.well-known/agent-card.json`, {
    headers: { "A2A-Version": "0.3" },
  });
  const client = await switchboard.factory().createFromAgentCard(await response.json());
  const events = await collect(stream(client, "stream:20"));
  equal(switchboard.lastRequest.headers.get("a2a-version"), "0.3");
  equal(chunks(events), numbered(20));
  const finished = { id: events[0].payload.value.id, tenant: "" };
  equal(state(await client.getTask(finished)), "COMPLETED");
  await failsWith(TaskNotCancelableError, () => client.cancelTask(finished));
  await failsWith(TaskNotFoundError, () => client.getTask({ id: randomUUID(), tenant: "" }));

  const held = { id: (await first(stream(client, "hold"))).payload.value.id, tenant: "" };
  const subscription = client.resubscribeTask(held);
  equal((await subscription.next()).value.payload.value.id, held.id);
  equal(state(await client.cancelTask(held)), "CANCELED");
  equal(state((await collect(subscription)).at(-1).payload.value), "CANCELED");
});

test("extension-header", async (switchboard) => {
  const client = await switchboard.client("probe");
  const offered = (await client.getAgentCard()).capabilities.extensions[0].uri;
  const wanted = withA2AExtensions(offered, "https://example.com/not-known");
  await send(client, "hello", undefined, { serviceParameters: ServiceParameters.create(wanted) });
  equal(switchboard.lastResponse.headers.get("a2a-extensions"), offered);
});

test("send-blocking", async (switchboard) => {
  const task = await send(await switchboard.client("probe"), "sleep:300");
  equal([state(task), text(task.status.message.parts)], ["COMPLETED", "slept for 300 ms"]);
  holds(task.contextId && task.status.timestamp, "the task has a context and a time");
});

test("send-polling", async (switchboard) => {
  const client = await switchboard.client("probe", { polling: true });
  const task = await send(client, "sleep:500");
  holds(["SUBMITTED", "WORKING"].includes(state(task)), `the task is ${state(task)}`);
  const done = await until(
    () => client.getTask({ id: task.id, tenant: "" }),
    (task) => state(task) === "COMPLETED",
  );
  equal(text(done.status.message.parts), "slept for 500 ms");
});

test("message-reply", async (switchboard) => {
  const reply = await send(await switchboard.client("probe"), "message");
  equal([reply.role, text(reply.parts)], [Role.ROLE_AGENT, "a direct message"]);
});

test("stream", async (switchboard) => {
  const events = await collect(stream(await switchboard.client("probe"), "stream:200"));
  const kinds = events.map(({ payload }) => payload.$case);
  equal([kinds[0], kinds.lastIndexOf("task"), kinds.at(-1)], ["task", 0, "statusUpdate"]);
  equal(chunks(events), numbered(200));
  const updates = events.map(({ payload }) => payload).filter(({ $case }) => $case === "artifactUpdate");
  equal(
    updates.map(({ value }) => [value.append, value.lastChunk]),
    updates.map((_, index) => [index > 0, index === 199]),
  );
  equal(state(events.at(-1).payload.value), "COMPLETED");
});

test("stream-message-reply", async (switchboard) => {
  const events = await collect(stream(await switchboard.client("probe"), "message"));
  equal(
    events.map(({ payload }) => [payload.$case, text(payload.value.parts)]),
    [["message", "a direct message"]],
  );
});

test("stream-input-required", async (switchboard) => {
  const client = await switchboard.client("probe");
  const asked = await collect(stream(client, "ask"));
  equal(state(asked.at(-1).payload.value), "INPUT_REQUIRED");
  const answered = (await collect(stream(client, "again", asked[0].payload.value))).at(-1).payload.value;
  equal([state(answered), text(answered.status.message.parts)], ["COMPLETED", "you said: again"]);
});

test("resubscribe", async (switchboard) => {
  const client = await switchboard.client("probe");
  const connection = new AbortController();
  const task = (await first(stream(client, "hold", undefined, { signal: connection.signal }))).payload.value;
  connection.abort();

  const events = client.resubscribeTask({ id: task.id, tenant: "" });
  const again = (await events.next()).value.payload;
  equal([again.$case, again.value.id], ["task", task.id]);
  await (await switchboard.client("probe")).cancelTask({ id: task.id, tenant: "" });
  equal(state((await collect(events)).at(-1).payload.value), "CANCELED");
});

test("resubscribe-chunks", async (switchboard) => {
  // The Task that opens the second stream and what follows make the whole, without a gap or a repetition.
  const client = await switchboard.client("probe");
  for (const count of COUNTS) {
    const connection = new AbortController();
    const options = { signal: connection.signal };
    const task = (await first(stream(client, `streamy:${count}`, undefined, options))).payload.value;
    connection.abort();
    const events = client.resubscribeTask({ id: task.id, tenant: "" });
    const opening = await events.next().catch(() => undefined);
    if (!opening) continue;
    const seen = opening.value.payload.value.artifacts.map((artifact) => text(artifact.parts)).join("");
    return equal(seen + chunks(await collect(events)), numbered(count));
  }
  throw new Error("every stream ended before the second connection was there");
});

test("get", async (switchboard) => {
  const client = await switchboard.client("probe");
  const sent = await client.sendMessage(request("hello", undefined, { metadata: { shelf: "b4" } }));
  const task = await client.getTask({ id: sent.id, tenant: "" });
  equal([task.id, task.contextId, state(task)], [sent.id, sent.contextId, "COMPLETED"]);
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
  const history = async (historyLength) =>
    (await client.getTask({ id: task.id, tenant: "", historyLength })).history;
  const whole = await history(undefined);
  holds(whole.length >= 3, `the history has ${whole.length} messages`);
  equal(await history(1), whole.slice(-1));
  equal(await history(0), []);
});

test("send-history-length", async (switchboard) => {
  const client = await switchboard.client("probe");
  const asked = await send(client, "ask");
  const task = await client.sendMessage(request("again", asked, { configuration: { historyLength: 1 } }));
  equal(task.history.length, 1);
});

test("list-tasks", async (switchboard) => {
  const client = await switchboard.client("probe");
  const { id, contextId } = await send(client, "hello");
  const sent = [id];
  for (let more = 0; more < 2; more += 1) {
    sent.push((await client.sendMessage(request("hello", undefined, { contextId }))).id);
  }

  const page = await client.listTasks(ListTasksRequest.fromJSON({ contextId, pageSize: 2, includeArtifacts: true }));
  equal([page.totalSize, page.pageSize, page.tasks.length], [3, 2, 2]);
  equal(
    page.tasks.map((task) => text(task.artifacts[0].parts)),
    ["hello", "hello"],
  );
  const pageToken = page.nextPageToken;
  const last = await client.listTasks(ListTasksRequest.fromJSON({ contextId, pageSize: 2, pageToken }));
  equal([last.nextPageToken, last.tasks.map((task) => task.artifacts)], ["", [[]]]);
  equal(
    [...page.tasks, ...last.tasks].map((task) => task.id),
    sent.reverse(),
  );
});

test("list-tasks-filter", async (switchboard) => {
  const client = await switchboard.client("probe");
  const { id, contextId, status } = await send(client, "ask");
  const list = (filter) => client.listTasks(ListTasksRequest.fromJSON({ contextId, ...filter }));
  const found = async (filter) => (await list(filter)).tasks.map((task) => task.id);
  equal(await found({ status: "TASK_STATE_INPUT_REQUIRED" }), [id]);
  equal(await found({ statusTimestampAfter: status.timestamp }), [id]);
  const none = await list({ status: "TASK_STATE_COMPLETED" });
  equal([none.tasks, none.totalSize, none.nextPageToken], [[], 0, ""]);
});

test("cancel", async (switchboard) => {
  const client = await switchboard.client("probe", { polling: true });
  const task = await send(client, "hold");
  const canceled = await client.cancelTask({ id: task.id, tenant: "" });
  equal([canceled.id, state(canceled)], [task.id, "CANCELED"]);
  equal(state(await client.getTask({ id: task.id, tenant: "" })), "CANCELED");
});

test("cancel-parked", async (switchboard) => {
  const client = await switchboard.client("probe");
  const task = await send(client, "ask");
  equal(state(await client.cancelTask({ id: task.id, tenant: "" })), "CANCELED");
});

test("multi-turn", async (switchboard) => {
  const client = await switchboard.client("guide");
  let asked = await send(client, "hi");
  equal([state(asked), text(asked.status.message.parts)], ["INPUT_REQUIRED", "Hello! What is your name?"]);
  asked = await send(client, "Ada", asked);
  equal(state(asked), "INPUT_REQUIRED");
  holds(text(asked.status.message.parts).includes("Nice to meet you, Ada"), "the guide has learnt the name");
  const told = await send(client, "streams", asked);
  equal([told.id, state(told)], [asked.id, "COMPLETED"]);
  holds(text(told.status.message.parts).includes("Last-Event-ID"), "the guide has explained streams");
});

test("auth-required", async (switchboard) => {
  const client = await switchboard.client("probe");
  const asked = await send(client, "auth");
  equal(state(asked), "AUTH_REQUIRED");
  const done = await send(client, "signed in", asked);
  equal([state(done), text(done.status.message.parts)], ["COMPLETED", "you said: signed in"]);
});

test("endings", async (switchboard) => {
  const client = await switchboard.client("probe");
  for (const [command, ending] of [
    ["reject", "REJECTED"],
    ["err", "FAILED"],
    ["panic", "FAILED"],
    ["silent", "FAILED"],
  ]) {
    equal([command, state(await send(client, command))], [command, ending]);
  }
});

test("parts-received", async (switchboard) => {
  const client = await switchboard.client("probe");
  const [file] = (await send(client, "file")).artifacts[0].parts;
  equal(
    [file.content.$case, file.content.value.toString(), file.filename, file.mediaType],
    ["raw", "a file from the probe\n", "probe.txt", "text/plain"],
  );
  const [data] = (await send(client, "data")).artifacts[0].parts;
  equal([data.content.value.probe, data.content.value.numbers], [true, [1, 2, 3]]);
});

test("parts-echoed", async (switchboard) => {
  const raw = Buffer.from(Uint8Array.from({ length: 256 }, (_, index) => index)).toString("base64");
  const sent = [
    { text: "grüße 🦀", mediaType: "text/markdown" },
    { raw, mediaType: "application/octet-stream", filename: "all.bin" },
    { url: "https://example.com/a.png", mediaType: "image/png", filename: "a.png" },
    { data: { integer: 7, fraction: 0.5, nested: { list: [true, null, "x"] } } },
    { data: [1, "two", null] },
  ];
  const parts = (await send(await switchboard.client("echo"), sent)).artifacts[0].parts;
  equal(
    parts.map((part) => Part.toJSON(part)),
    sent,
  );
});

test("large-artifact", async (switchboard) => {
  const events = await collect(stream(await switchboard.client("probe"), "big:1000000"));
  equal(chunks(events).length, 1_000_000);
});

test("error-task-not-found", async (switchboard) => {
  const client = await switchboard.client("probe");
  const unknown = { id: randomUUID(), tenant: "" };
  await failsWith(TaskNotFoundError, () => client.getTask(unknown));
  await failsWith(TaskNotFoundError, () => client.cancelTask(unknown));
  await failsWith(TaskNotFoundError, () => first(client.resubscribeTask(unknown)));
  await failsWith(TaskNotFoundError, () => send(client, "hello", unknown));
  await failsWith(TaskNotFoundError, () => first(stream(client, "hello", unknown)));
});

test("error-not-cancelable", async (switchboard) => {
  const client = await switchboard.client("probe");
  const task = await send(client, "hello");
  await failsWith(TaskNotCancelableError, () => client.cancelTask({ id: task.id, tenant: "" }));
});

test("error-send-to-finished", async (switchboard) => {
  const client = await switchboard.client("probe");
  const task = await send(client, "hello");
  await failsWith(UnsupportedOperationError, () => send(client, "hello", task));
});

test("error-stream-to-finished", async (switchboard) => {
  const client = await switchboard.client("probe");
  const task = await send(client, "hello");
  await failsWith(UnsupportedOperationError, () => first(stream(client, "hello", task)));
});

test("error-resubscribe", async (switchboard) => {
  const client = await switchboard.client("probe");
  const task = await send(client, "hello");
  await failsWith(UnsupportedOperationError, () => first(client.resubscribeTask({ id: task.id, tenant: "" })));
});

test("error-invalid-params", async (switchboard) => {
  const client = await switchboard.client("probe");
  const list = (filter) => () => client.listTasks(ListTasksRequest.fromJSON(filter));
  await failsWith(RequestMalformedError, list({ pageSize: 1000 }));
  await failsWith(RequestMalformedError, list({ pageToken: "not a token" }));
  const task = await send(client, "ask");
  await failsWith(RequestMalformedError, () => send(client, "again", { id: task.id, contextId: randomUUID() }));
});

test(
  "error-method-not-found",
  async (switchboard) => {
    const { transport } = await switchboard.client("probe");
    const options = { serviceParameters: { "A2A-Version": "1.0" } };
    const error = await failsWith(Error, () => transport.callExtensionMethod("UndoTask", {}, options));
    equal(error.envelopeCode, -32601);
  },
  { only: "jsonrpc" },
);

test("error-no-extended-card", async (switchboard) => {
  // An open server says so on its card, and says it again to a client with a card from other times.
  const card = await new DefaultAgentCardResolver().resolve(`${switchboard.address}/a2a/echo/`);
  equal(card.capabilities.extendedAgentCard, false);
  card.capabilities.extendedAgentCard = true;
  const client = await switchboard.factory().createFromAgentCard(card);
  await failsWith(UnsupportedOperationError, () => client.getAgentCard());
});

await main((address, binding) => new Switchboard(address, binding));
