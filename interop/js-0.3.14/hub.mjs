// Agents of all SDKs behind the hub, called with this SDK's client: the servers say what they do. Whatever version and
// binding an agent speaks, the caller's own hold.

import { randomUUID } from "node:crypto";
import {
  DefaultAgentCardResolver,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from "@a2a-js/sdk/client";
import { hubTasks } from "../hub_tasks.mjs";
import {
  CONTENTS,
  collect,
  equal,
  failsWith,
  first,
  holds,
  hubTest,
  main,
  numbered,
  streamFailsWith,
  until,
} from "../runner.mjs";
import { ends, get, hook, receive, set, shows, states } from "./push.mjs";
import { Switchboard, chunks, message, send, stream, text } from "./switchboard.mjs";

const { texts, begun, endedByCancel } = hubTasks({
  send,
  get: (client, { id }) => client.getTask({ id }),
  cancel: (client, { id }) => client.cancelTask({ id }),
  text,
  state: (task) => task.status.state,
  states,
  ends,
});

hubTest("card", async (switchboard, agent) => {
  const card = await new DefaultAgentCardResolver().resolve(`${switchboard.address}/a2a/${agent}/`);
  equal(
    card.skills.map((skill) => skill.id),
    ["behave"],
  );
  equal([card.capabilities.streaming, card.capabilities.pushNotifications], [true, true]);
  for (const { url } of [card, ...card.additionalInterfaces]) {
    holds(url.startsWith(`${switchboard.address}/a2a/${agent}`), `the card points to ${url}`);
  }
});

hubTest("send-blocking", async (switchboard, agent) => {
  const task = await send(await switchboard.client(agent), "echo hello");
  equal([task.status.state, texts(task)], ["completed", ["hello"]]);
});

hubTest("send-polling", async (switchboard, agent) => {
  const client = await switchboard.client(agent, { polling: true });
  const task = await send(client, "stream 50");
  const done = await until(
    () => client.getTask({ id: task.id }),
    (task) => task.status.state === "completed",
  );
  equal(texts(done), [numbered(50)]);
});

hubTest("message-reply", async (switchboard, agent) => {
  const task = await send(await switchboard.client(agent), "reply hello");
  equal([task.status.state, text(task.status.message.parts)], ["completed", "hello"]);
});

hubTest("stream", async (switchboard, agent) => {
  const events = await collect(stream(await switchboard.client(agent), "stream 50"));
  equal([events[0].kind, chunks(events)], ["task", numbered(50)]);
  equal([events.at(-1).status.state, events.at(-1).final], ["completed", true]);
});

hubTest("multi-turn", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const asked = await send(client, "ask");
  equal([asked.status.state, text(asked.status.message.parts)], ["input-required", "what is your name?"]);
  const told = await send(client, "Ada", asked);
  equal([told.id, told.status.state, texts(told)], [asked.id, "completed", ["hello Ada"]]);
});

hubTest("stream-input-required", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const asked = await collect(stream(client, "ask"));
  equal([asked.at(-1).status.state, asked.at(-1).final], ["input-required", true]);
  const told = await collect(stream(client, "Ada", asked[0]));
  equal([chunks(told), told.at(-1).status.state, told.at(-1).final], ["hello Ada", "completed", true]);
});

hubTest("resubscribe", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const connection = new AbortController();
  const task = await first(stream(client, "wait", undefined, { signal: connection.signal }));
  connection.abort();
  const events = client.resubscribeTask({ id: task.id });
  equal((await events.next()).value.id, task.id);
  await (await switchboard.client(agent)).cancelTask({ id: task.id });
  const last = (await collect(events)).at(-1);
  equal([last.status.state, last.final], ["canceled", true]);
});

hubTest("get", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const sent = await send(client, "echo hello");
  const task = await client.getTask({ id: sent.id });
  equal([task.id, task.contextId, task.status.state], [sent.id, sent.contextId, "completed"]);
  equal([text(task.history[0].parts), texts(task)], ["echo hello", ["hello"]]);
});

hubTest("history-length", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const answer = message("Ada", await send(client, "ask"));
  const told = await client.sendMessage({ message: answer, configuration: { historyLength: 1 } });
  equal([told.status.state, told.history.length], ["completed", 1]);
  const whole = await client.getTask({ id: told.id });
  holds(whole.history.length > 1, `the history has ${whole.history.length} messages`);
  equal((await client.getTask({ id: told.id, historyLength: 1 })).history, whole.history.slice(-1));
});

hubTest("cancel", async (switchboard, agent) => {
  const client = await switchboard.client(agent, { polling: true });
  const task = await begun(client);
  const canceled = await client.cancelTask({ id: task.id });
  equal([canceled.id, canceled.status.state], [task.id, "canceled"]);
});

hubTest("cancel-parked", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const task = await send(client, "ask");
  equal((await client.cancelTask({ id: task.id })).status.state, "canceled");
});

hubTest("endings", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const { status: failed } = await send(client, "fail");
  equal([failed.state, text(failed.message.parts)], ["failed", "it did not work"]);
  const { status: rejected } = await send(client, "juggle");
  equal([rejected.state, text(rejected.message.parts)], ["rejected", "juggle is nothing this agent does"]);
});

hubTest("file-inspected", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  for (const content of CONTENTS) {
    const file = { bytes: content.toString("base64"), mimeType: "application/octet-stream", name: "sent.bin" };
    const sent = await send(client, ["inspect", { kind: "file", file }]);
    for (const { artifacts } of [sent, await client.getTask({ id: sent.id })]) {
      const [said, returned] = artifacts[0].parts;
      equal(text([said]), content.toString("hex"));
      equal([...Buffer.from(returned.file.bytes, "base64")], [...content].reverse());
    }
  }
});

hubTest("parts-echoed", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const [uri, data] = ["https://example.com/a.png", { integer: 7, nested: { list: [true, null, "x"] } }];
  const file = { kind: "file", file: { uri, mimeType: "image/png" } };
  const { status, artifacts } = await send(client, ["file", file, { kind: "data", data }]);
  const [returned, also] = artifacts[0].parts;
  equal([status.state, returned.file.uri, also.data], ["completed", uri, data]);
});

hubTest("push-inline", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const receiver = await receive(switchboard);
  const configuration = { pushNotificationConfig: hook(receiver) };
  const task = await client.sendMessage({ message: message("echo hello"), configuration });
  equal(states(await receiver.told(task.id, ends)).at(-1), "completed");
});

hubTest("push-set-get", async (switchboard, agent) => {
  const client = await switchboard.client(agent, { polling: true });
  const task = await begun(client);
  const receiver = await receive(switchboard);
  shows(await set(client, task, receiver), task, receiver);
  shows(await get(client, task), task, receiver);
  await endedByCancel(client, task, [receiver]);
});

hubTest("push-list-delete", async (switchboard, agent) => {
  const client = await switchboard.client(agent, { polling: true });
  const task = await begun(client);
  const [deleted, kept] = [await receive(switchboard), await receive(switchboard)];
  await set(client, task, deleted, "deleted");
  await set(client, task, kept, "kept");
  const list = () => client.listTaskPushNotificationConfig({ id: task.id });
  const [first, second] = await list();
  shows(first, task, deleted, "deleted");
  shows(second, task, kept, "kept");
  await client.deleteTaskPushNotificationConfig({ id: task.id, pushNotificationConfigId: "deleted" });
  equal(
    (await list()).map(({ pushNotificationConfig }) => pushNotificationConfig.id),
    ["kept"],
  );
  await endedByCancel(client, task, [kept]);
  deleted.isQuiet();
});

hubTest("error-task-not-found", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const unknown = { id: randomUUID(), contextId: undefined };
  await failsWith(TaskNotFoundError, () => client.getTask({ id: unknown.id }));
  await failsWith(TaskNotFoundError, () => client.cancelTask({ id: unknown.id }));
  await failsWith(TaskNotFoundError, () => send(client, "echo hello", unknown));
});

hubTest("error-resubscribe", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const task = await send(client, "echo hello");
  const resubscribe = (id) => () => first(client.resubscribeTask({ id }));
  await streamFailsWith(UnsupportedOperationError, resubscribe(task.id));
  await streamFailsWith(TaskNotFoundError, resubscribe(randomUUID()));
});

hubTest("errors", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const task = await send(client, "echo hello");
  await failsWith(TaskNotCancelableError, () => client.cancelTask({ id: task.id }));
  await failsWith(UnsupportedOperationError, () => send(client, "echo again", task));
  equal((await client.getTask({ id: task.id })).status.state, "completed");
});

await main((address, binding, version) => new Switchboard(address, binding, version), ["0.3"]);
