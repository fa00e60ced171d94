// Agents of all SDKs behind the hub, called with this SDK's client in both of its versions: the servers say what they do.
// Whatever version and binding an agent speaks, the caller's own hold.

import { randomUUID } from "node:crypto";
import { ListTasksRequest } from "@a2a-js/sdk";
import { TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError } from "@a2a-js/sdk/errors";
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
import { drop, ends, get, hook, inline, list, receive, shown, states } from "./push.mjs";
import { Switchboard, chunks, request, send, state, stream, text } from "./switchboard.mjs";

const named = (task) => ({ id: task.id, tenant: "" });

const { texts, begun, endedByCancel } = hubTasks({
  send,
  get: (client, task) => client.getTask(named(task)),
  cancel: (client, task) => client.cancelTask(named(task)),
  text,
  state,
  states,
  ends,
});

hubTest("card", async (switchboard, agent) => {
  const card = await switchboard.card(agent);
  equal(
    card.skills.map((skill) => skill.id),
    ["behave"],
  );
  equal([card.capabilities.streaming, card.capabilities.pushNotifications], [true, true]);
  const interfaces = card.supportedInterfaces ?? [card, ...card.additionalInterfaces];
  const version = card.supportedInterfaces?.[0].protocolVersion ?? card.protocolVersion;
  holds(version.startsWith(switchboard.version), `the card is for ${version}`);
  for (const { url } of interfaces) {
    holds(url.startsWith(`${switchboard.address}/a2a/${agent}`), `the card points to ${url}`);
  }
});

hubTest("send-blocking", async (switchboard, agent) => {
  const task = await send(await switchboard.client(agent), "echo hello");
  equal(switchboard.lastRequest.headers.get("a2a-version"), switchboard.version);
  equal([state(task), texts(task)], ["COMPLETED", ["hello"]]);
});

hubTest("send-polling", async (switchboard, agent) => {
  const client = await switchboard.client(agent, { polling: true });
  const task = await send(client, "stream 50");
  const done = await until(
    () => client.getTask(named(task)),
    (task) => state(task) === "COMPLETED",
  );
  equal(texts(done), [numbered(50)]);
});

hubTest("message-reply", async (switchboard, agent) => {
  const task = await send(await switchboard.client(agent), "reply hello");
  equal([state(task), text(task.status.message.parts)], ["COMPLETED", "hello"]);
});

hubTest("stream", async (switchboard, agent) => {
  const events = await collect(stream(await switchboard.client(agent), "stream 50"));
  equal([events[0].payload.$case, chunks(events)], ["task", numbered(50)]);
  equal(state(events.at(-1).payload.value), "COMPLETED");
});

hubTest("multi-turn", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const asked = await send(client, "ask");
  equal([state(asked), text(asked.status.message.parts)], ["INPUT_REQUIRED", "what is your name?"]);
  const told = await send(client, "Ada", asked);
  equal([told.id, state(told), texts(told)], [asked.id, "COMPLETED", ["hello Ada"]]);
});

hubTest("stream-input-required", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const asked = await collect(stream(client, "ask"));
  equal(state(asked.at(-1).payload.value), "INPUT_REQUIRED");
  const told = await collect(stream(client, "Ada", asked[0].payload.value));
  equal([chunks(told), state(told.at(-1).payload.value)], ["hello Ada", "COMPLETED"]);
});

hubTest("resubscribe", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const connection = new AbortController();
  const task = (await first(stream(client, "wait", undefined, { signal: connection.signal }))).payload.value;
  connection.abort();
  const events = client.resubscribeTask(named(task));
  equal((await events.next()).value.payload.value.id, task.id);
  await (await switchboard.client(agent)).cancelTask(named(task));
  equal(state((await collect(events)).at(-1).payload.value), "CANCELED");
});

hubTest("get", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const sent = await send(client, "echo hello");
  const task = await client.getTask(named(sent));
  equal([task.id, task.contextId, state(task)], [sent.id, sent.contextId, "COMPLETED"]);
  equal([text(task.history[0].parts), texts(task)], ["echo hello", ["hello"]]);
});

hubTest("history-length", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const asked = await send(client, "ask");
  const told = await client.sendMessage(request("Ada", asked, { configuration: { historyLength: 1 } }));
  equal([state(told), told.history.length], ["COMPLETED", 1]);
  const whole = await client.getTask(named(told));
  holds(whole.history.length > 1, `the history has ${whole.history.length} messages`);
  equal((await client.getTask({ ...named(told), historyLength: 1 })).history, whole.history.slice(-1));
});

hubTest(
  "list-tasks",
  async (switchboard, agent) => {
    const client = await switchboard.client(agent);
    const { id, contextId } = await send(client, "echo hello");
    const again = await client.sendMessage(request("echo again", undefined, { contextId }));
    const page = await client.listTasks(ListTasksRequest.fromJSON({ contextId, pageSize: 1 }));
    const pageToken = page.nextPageToken;
    const last = await client.listTasks(ListTasksRequest.fromJSON({ contextId, pageSize: 1, pageToken }));
    equal(
      [page.totalSize, ...[...page.tasks, ...last.tasks].map((task) => task.id)],
      [2, again.id, id],
    );
  },
  // In version 0.3 there is no such call.
  { lacks: ["jsonrpc-0.3", "rest-0.3"] },
);

hubTest("cancel", async (switchboard, agent) => {
  const client = await switchboard.client(agent, { polling: true });
  const task = await begun(client);
  const canceled = await client.cancelTask(named(task));
  equal([canceled.id, state(canceled)], [task.id, "CANCELED"]);
});

hubTest("cancel-parked", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const task = await send(client, "ask");
  equal(state(await client.cancelTask(named(task))), "CANCELED");
});

hubTest("endings", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const failed = await send(client, "fail");
  equal([state(failed), text(failed.status.message.parts)], ["FAILED", "it did not work"]);
  const rejected = await send(client, "juggle");
  equal([state(rejected), text(rejected.status.message.parts)], ["REJECTED", "juggle is nothing this agent does"]);
});

hubTest("file-inspected", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  for (const content of CONTENTS) {
    const raw = content.toString("base64");
    const sent = await send(client, ["inspect", { raw, mediaType: "application/octet-stream", filename: "sent.bin" }]);
    for (const { artifacts } of [sent, await client.getTask(named(sent))]) {
      const [said, returned] = artifacts[0].parts;
      equal([text([said]), returned.content.$case], [content.toString("hex"), "raw"]);
      equal([...returned.content.value], [...content].reverse());
    }
  }
});

hubTest("parts-echoed", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const [url, data] = ["https://example.com/a.png", { integer: 7, nested: { list: [true, null, "x"] } }];
  const task = await send(client, ["file", { url, mediaType: "image/png" }, { data }]);
  equal(state(task), "COMPLETED");
  equal(
    task.artifacts[0].parts.map(({ content }) => content.value),
    [url, data],
  );
});

hubTest("push-inline", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const receiver = await receive(switchboard, { version: switchboard.version });
  const task = await client.sendMessage(request("echo hello", undefined, inline(receiver, { id: "hook" })));
  equal(states(await receiver.told(task.id, ends)).at(-1), "COMPLETED");
});

hubTest("push-set-get", async (switchboard, agent) => {
  const client = await switchboard.client(agent, { polling: true });
  const task = await begun(client);
  const receiver = await receive(switchboard, { version: switchboard.version });
  const fields = { taskId: task.id, id: "hook" };
  equal(await client.createTaskPushNotificationConfig(hook(receiver, fields)), shown(receiver, fields));
  equal(await get(client, task.id, "hook"), shown(receiver, fields));
  await endedByCancel(client, task, [receiver]);
});

hubTest("push-list-delete", async (switchboard, agent) => {
  const client = await switchboard.client(agent, { polling: true });
  const task = await begun(client);
  const { version } = switchboard;
  const [deleted, kept] = [await receive(switchboard, { version }), await receive(switchboard, { version })];
  const fields = [
    { taskId: task.id, id: "deleted" },
    { taskId: task.id, id: "kept" },
  ];
  await client.createTaskPushNotificationConfig(hook(deleted, fields[0]));
  await client.createTaskPushNotificationConfig(hook(kept, fields[1]));
  equal((await list(client, task.id)).configs, [shown(deleted, fields[0]), shown(kept, fields[1])]);
  await drop(client, task.id, "deleted");
  equal((await list(client, task.id)).configs, [shown(kept, fields[1])]);
  await endedByCancel(client, task, [kept]);
  deleted.isQuiet();
});

hubTest("error-task-not-found", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const unknown = { id: randomUUID(), tenant: "" };
  await failsWith(TaskNotFoundError, () => client.getTask(unknown));
  await failsWith(TaskNotFoundError, () => client.cancelTask(unknown));
  await failsWith(TaskNotFoundError, () => send(client, "echo hello", unknown));
});

hubTest("error-resubscribe", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const task = await send(client, "echo hello");
  const resubscribe = (task) => () => first(client.resubscribeTask(named(task)));
  await streamFailsWith(UnsupportedOperationError, resubscribe(task));
  await streamFailsWith(TaskNotFoundError, resubscribe({ id: randomUUID() }));
});

hubTest("errors", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const task = await send(client, "echo hello");
  await failsWith(TaskNotCancelableError, () => client.cancelTask(named(task)));
  await failsWith(UnsupportedOperationError, () => send(client, "echo again", task));
  equal(state(await client.getTask(named(task))), "COMPLETED");
});

await main((address, binding, version) => new Switchboard(address, binding, version), ["1.0", "0.3"]);
