// Webhooks with @a2a-js/sdk 1.3.0: set with its client or with a message, and received as its StreamResponse, which it
// also makes of what arrives where the client speaks 0.3.

import { randomUUID } from "node:crypto";
import { StreamResponse, TaskPushNotificationConfig } from "@a2a-js/sdk";
import { legacyPushNotificationToV1StreamResponse } from "@a2a-js/sdk/compat/v0_3";
import { PushNotificationNotSupportedError, RequestMalformedError, TaskNotFoundError } from "@a2a-js/sdk/errors";
import { CREDENTIALS, Receiver, TOKEN } from "../receiver.mjs";
import { collect, equal, failsWith, holds, numbered, test } from "../runner.mjs";
import { chunks, request, send, state, stream, text } from "./switchboard.mjs";

const ENDED = ["COMPLETED", "CANCELED", "FAILED", "REJECTED"];

const PARSERS = {
  "1.0": (body) => StreamResponse.fromJSON(body),
  "0.3": (body) => {
    equal(body.kind, "task");
    return legacyPushNotificationToV1StreamResponse(body);
  },
};

const tellsStatus = ({ payload }) => ["task", "statusUpdate"].includes(payload.$case);
export const ends = (event) => tellsStatus(event) && ENDED.includes(state(event.payload.value));
export const states = (events) => events.filter(tellsStatus).map(({ payload }) => state(payload.value));
export const receive = (switchboard, { version = "1.0", ...settings } = {}) =>
  new Receiver(switchboard.address, version, PARSERS[version], settings).start();
export const hook = (receiver, fields) =>
  TaskPushNotificationConfig.fromJSON({
    url: receiver.url,
    token: TOKEN,
    authentication: { scheme: "Bearer", credentials: CREDENTIALS },
    ...fields,
  });
/** What is told of a webhook: what was set, without its secrets. */
export const shown = (receiver, fields) =>
  TaskPushNotificationConfig.fromJSON({ url: receiver.url, authentication: { scheme: "Bearer" }, ...fields });
export const inline = (receiver, fields, configuration) => ({
  configuration: { ...configuration, taskPushNotificationConfig: hook(receiver, fields) },
});
export const get = (client, taskId, id) => client.getTaskPushNotificationConfig({ taskId, id, tenant: "" });
export const drop = (client, taskId, id) => client.deleteTaskPushNotificationConfig({ taskId, id, tenant: "" });
export const list = (client, taskId, pageSize = 50, pageToken = "") =>
  client.listTaskPushNotificationConfig({ taskId, pageSize, pageToken, tenant: "" });
const cancel = (client, id) => client.cancelTask({ id, tenant: "" });

test("push-set-get", async (switchboard) => {
  const client = await switchboard.client("probe", { polling: true });
  const { id: taskId } = await send(client, "hold");
  const [receiver, other] = [await receive(switchboard), await receive(switchboard)];
  const named = { taskId, id: "hook" };
  const created = await client.createTaskPushNotificationConfig(hook(receiver, named));
  equal(created, shown(receiver, named));
  // Without an id it is another one, with an id of the server's making.
  const unnamed = await client.createTaskPushNotificationConfig(hook(other, { taskId }));
  holds(unnamed.id, "the server has made up an id");
  equal(unnamed, shown(other, { taskId, id: unnamed.id }));
  for (const config of [created, unnamed]) equal(await get(client, taskId, config.id), config);
  await cancel(client, taskId);
  for (const told of [receiver, other]) equal(states(await told.told(taskId, ends)), ["CANCELED"]);
});

test("push-list", async (switchboard) => {
  const client = await switchboard.client("probe", { polling: true });
  const { id: taskId } = await send(client, "hold");
  equal((await list(client, taskId)).configs, []);
  const [configs, receivers] = [[], []];
  for (const id of ["a", "b", "c"]) {
    const receiver = await receive(switchboard);
    await client.createTaskPushNotificationConfig(hook(receiver, { taskId, id }));
    configs.push(shown(receiver, { taskId, id }));
    receivers.push(receiver);
  }
  const answer = await list(client, taskId);
  equal([answer.configs, answer.nextPageToken], [configs, ""]);
  // Over HTTP+JSON this client does not say which page it wants.
  if (switchboard.binding === "jsonrpc") {
    const page = await list(client, taskId, 2);
    holds(page.nextPageToken, "there is a second page");
    const last = await list(client, taskId, 2, page.nextPageToken);
    equal([page.configs, last.configs, last.nextPageToken], [configs.slice(0, 2), configs.slice(2), ""]);
  }
  await cancel(client, taskId);
  for (const receiver of receivers) equal(states(await receiver.told(taskId, ends)), ["CANCELED"]);
});

test("push-delete", async (switchboard) => {
  const client = await switchboard.client("probe", { polling: true });
  const { id: taskId } = await send(client, "hold");
  const [deleted, kept] = [await receive(switchboard), await receive(switchboard)];
  await client.createTaskPushNotificationConfig(hook(deleted, { taskId, id: "deleted" }));
  await client.createTaskPushNotificationConfig(hook(kept, { taskId, id: "kept" }));
  await drop(client, taskId, "deleted");
  await failsWith(TaskNotFoundError, () => get(client, taskId, "deleted"));
  equal((await list(client, taskId)).configs, [shown(kept, { taskId, id: "kept" })]);
  await cancel(client, taskId);
  equal(states(await kept.told(taskId, ends)), ["CANCELED"]);
  deleted.isQuiet();
  for (let time = 0; time < 2; time += 1) {
    await drop(client, taskId, "kept");
    equal((await list(client, taskId)).configs, []);
  }
});

test("push-send-blocking", async (switchboard) => {
  const client = await switchboard.client("probe");
  const receiver = await receive(switchboard);
  const task = await client.sendMessage(request("hello", undefined, inline(receiver, { id: "hook" })));
  equal(state(task), "COMPLETED");
  const told = await receiver.told(task.id, ends);
  equal(states(told), ["WORKING", "COMPLETED"]);
  equal(
    told.map(({ payload }) => payload.$case),
    ["statusUpdate", "artifactUpdate", "statusUpdate"],
  );
  const updates = told.map(({ payload }) => payload.value);
  equal(
    updates.map(({ taskId, contextId }) => [taskId, contextId]),
    updates.map(() => [task.id, task.contextId]),
  );
  equal([updates[1].artifact.name, text(updates[1].artifact.parts)], ["greeting", "hello"]);
  equal(await get(client, task.id, "hook"), shown(receiver, { taskId: task.id, id: "hook" }));
});

test("push-send-polling", async (switchboard) => {
  const receiver = await receive(switchboard);
  const client = await switchboard.client("probe", { polling: true, pushNotificationConfig: hook(receiver) });
  const task = await send(client, "sleep:200");
  const told = await receiver.told(task.id, ends);
  equal(states(told), ["WORKING", "COMPLETED"]);
  equal(text(told.at(-1).payload.value.status.message.parts), "slept for 200 ms");
});

test("push-stream", async (switchboard) => {
  const receiver = await receive(switchboard);
  const client = await switchboard.client("probe", { pushNotificationConfig: hook(receiver) });
  const [opening] = await collect(stream(client, "stream:200"));
  const told = await receiver.told(opening.payload.value.id, ends);
  equal(states(told), ["WORKING", "COMPLETED"]);
  // Chunks that wait for one another come as one, so there may be fewer.
  equal(chunks(told), numbered(200));
});

test("push-input-required", async (switchboard) => {
  const receiver = await receive(switchboard);
  const client = await switchboard.client("probe", { pushNotificationConfig: hook(receiver) });
  const asked = await send(client, "ask");
  equal(state(asked), "INPUT_REQUIRED");
  await send(await switchboard.client("probe"), "again", asked);
  const told = await receiver.told(asked.id, ends);
  equal([states(told).at(-1), states(told).filter((state) => state === "INPUT_REQUIRED").length], ["COMPLETED", 1]);
  equal(text(told.at(-1).payload.value.status.message.parts), "you said: again");
});

test("push-retry", async (switchboard) => {
  // What was not taken comes again, the same, before anything else does.
  const receiver = await receive(switchboard, { refuse: 1 });
  const client = await switchboard.client("probe", { pushNotificationConfig: hook(receiver) });
  const task = await send(client, "hello");
  equal(states(await receiver.told(task.id, ends)), ["WORKING", "COMPLETED"]);
  const [refused, again] = receiver.deliveries;
  equal([refused.taken, again.taken], [false, true]);
  equal([again.id, again.body], [refused.id, refused.body]);
});

test("push-after-end", async (switchboard) => {
  // Who comes late has seen nothing of the task, and so is told all of it.
  const client = await switchboard.client("probe");
  const task = await send(client, "hello");
  const receiver = await receive(switchboard);
  await client.createTaskPushNotificationConfig(hook(receiver, { taskId: task.id }));
  const told = await receiver.told(task.id, ends);
  equal(states(told), ["COMPLETED"]);
  const { $case, value } = told[0].payload;
  equal([$case, value.id, text(value.artifacts[0].parts)], ["task", task.id, "hello"]);
});

test("push-cancel", async (switchboard) => {
  const receiver = await receive(switchboard);
  const client = await switchboard.client("probe", { polling: true, pushNotificationConfig: hook(receiver) });
  const task = await send(client, "hold");
  while (states([(await receiver.next()).event])[0] !== "WORKING");
  await cancel(client, task.id);
  equal(states(await receiver.told(task.id, ends)), ["WORKING", "CANCELED"]);
});

test("push-version-fallback", async (switchboard) => {
  // The card for version 0.3 makes this client set webhooks in 0.3, and what arrives is in 0.3 too.
  const response = await fetch(`${switchboard.address}/a2a/probe/.well-known/agent-card.json`, {
    headers: { "A2A-Version": "0.3" },
  });
  const client = await switchboard.factory().createFromAgentCard(await response.json());
  const version = "0.3";
  const [receiver, sent] = [await receive(switchboard, { version }), await receive(switchboard, { version })];
  const atOnce = inline(sent, { id: "sent" }, { returnImmediately: true });
  const { id: taskId } = await client.sendMessage(request("hold", undefined, atOnce));
  const created = await client.createTaskPushNotificationConfig(hook(receiver, { taskId, id: "hook" }));
  equal(created, shown(receiver, { taskId, id: "hook" }));
  equal(await get(client, taskId, "hook"), created);
  equal((await list(client, taskId)).configs, [shown(sent, { taskId, id: "sent" }), created]);
  await cancel(client, taskId);
  equal(states(await sent.told(taskId, ends)), ["WORKING", "CANCELED"]);
  equal(states(await receiver.told(taskId, ends)).at(-1), "CANCELED");
  await drop(client, taskId, "hook");
  await failsWith(TaskNotFoundError, () => get(client, taskId, "hook"));
});

test("error-push-refused", async (switchboard) => {
  // A private address, alone and with a message, which is then refused; a webhook and a task that are not there.
  const client = await switchboard.client("probe");
  const { id: taskId } = await send(client, "ask");
  const nowhere = { url: "http://192.168.7.7/hook" };
  const create = (receiver, fields) => () => client.createTaskPushNotificationConfig(hook(receiver, fields));
  await failsWith(RequestMalformedError, create(nowhere, { taskId, id: "hook" }));
  await failsWith(RequestMalformedError, () => client.sendMessage(request("hello", undefined, inline(nowhere))));
  await failsWith(TaskNotFoundError, () => get(client, taskId, "hook"));
  await failsWith(TaskNotFoundError, create(await receive(switchboard), { taskId: randomUUID() }));
});

test(
  "error-push-not-supported",
  async (switchboard) => {
    // The server with a key has no webhooks.
    const client = await switchboard.client("probe");
    const task = await send(client, "ask");
    const named = { taskId: task.id, id: "hook", tenant: "" };
    const config = TaskPushNotificationConfig.fromJSON({ ...named, url: "https://example.com/hook" });
    const page = { taskId: task.id, pageSize: 10, pageToken: "", tenant: "" };
    const options = { serviceParameters: { "A2A-Version": "1.0" } };
    // The client asks the card first; the transport asks the server.
    for (const target of [client, client.transport]) {
      for (const call of [
        () => target.createTaskPushNotificationConfig(config, options),
        () => target.getTaskPushNotificationConfig(named, options),
        () => target.listTaskPushNotificationConfig(page, options),
        () => target.deleteTaskPushNotificationConfig(named, options),
      ]) {
        await failsWith(PushNotificationNotSupportedError, call);
      }
    }
  },
  { keyed: true },
);
