// Webhooks with @a2a-js/sdk 0.3.14: set with its client or with a message, and received as its Task. It has that type
// for the compiler alone, so what a receiver reads of it is looked at here.

import { randomUUID } from "node:crypto";
import { PushNotificationNotSupportedError, TaskNotFoundError } from "@a2a-js/sdk/client";
import { CREDENTIALS, Receiver, TOKEN } from "../receiver.mjs";
import { collect, equal, failsWith, holds, numbered, test } from "../runner.mjs";
import { message, send, stream, text } from "./switchboard.mjs";

const ENDED = ["completed", "canceled", "failed", "rejected"];

function parse(task) {
  equal(
    [task.kind, typeof task.id, typeof task.contextId, typeof task.status.state],
    ["task", "string", "string", "string"],
  );
  holds(Number.isFinite(Date.parse(task.status.timestamp)), `${task.status.timestamp} is a time`);
  for (const { kind, role, messageId, parts } of task.history ?? []) {
    holds(["user", "agent"].includes(role), `${role} is a role`);
    equal([kind, typeof messageId, Array.isArray(parts)], ["message", "string", true]);
  }
  for (const { artifactId, parts } of task.artifacts ?? []) {
    equal([typeof artifactId, parts.map(({ kind }) => kind)], ["string", parts.map(() => "text")]);
  }
  return task;
}

export const ends = (task) => ENDED.includes(task.status.state);
export const states = (tasks) => tasks.map((task) => task.status.state);
export const receive = (switchboard, settings) => new Receiver(switchboard.address, "0.3", parse, settings).start();
export const hook = (receiver, id = "hook") => ({
  ...(id && { id }),
  url: receiver.url,
  token: TOKEN,
  authentication: { schemes: ["Bearer"], credentials: CREDENTIALS },
});
export const set = (client, task, receiver, id) =>
  client.setTaskPushNotificationConfig({ taskId: task.id, pushNotificationConfig: hook(receiver, id) });
export const get = (client, task, id = "hook") =>
  client.getTaskPushNotificationConfig({ id: task.id, pushNotificationConfigId: id });

/** The answer is what was set, without its secrets. Over HTTP+JSON this client says "" for what is not there. */
export function shows({ taskId, pushNotificationConfig }, task, receiver, id = "hook") {
  const { url, token, authentication } = pushNotificationConfig;
  equal([taskId, pushNotificationConfig.id, url], [task.id, id, receiver.url]);
  equal([token || null, authentication.credentials || null, authentication.schemes], [null, null, ["Bearer"]]);
}

test("push-set-get", async (switchboard) => {
  const client = await switchboard.client("probe", { polling: true });
  const task = await send(client, "hold");
  const receiver = await receive(switchboard);
  const [other, later] = [await receive(switchboard), await receive(switchboard)];
  shows(await set(client, task, receiver), task, receiver);
  shows(await set(client, task, other, "other"), task, other, "other");
  shows(await get(client, task), task, receiver);
  shows(await get(client, task, "other"), task, other, "other");
  // The same id sets the same webhook anew.
  shows(await set(client, task, later), task, later);
  shows(await get(client, task), task, later);
  await client.cancelTask({ id: task.id });
  for (const told of [other, later]) equal(states(await told.told(task.id, ends)), ["canceled"]);
  receiver.isQuiet();
});

test(
  "push-get-by-task",
  async (switchboard) => {
    // In version 0.3 a webhook needs no id to be set or asked for. Over HTTP+JSON this client wants one.
    const client = await switchboard.client("probe", { polling: true });
    const task = await send(client, "hold");
    const receiver = await receive(switchboard);
    shows(await set(client, task, receiver, null), task, receiver, task.id);
    shows(await client.getTaskPushNotificationConfig({ id: task.id }), task, receiver, task.id);
    await client.cancelTask({ id: task.id });
    equal(states(await receiver.told(task.id, ends)), ["canceled"]);
  },
  { only: "jsonrpc" },
);

test("push-list", async (switchboard) => {
  const client = await switchboard.client("probe", { polling: true });
  const task = await send(client, "hold");
  const list = () => client.listTaskPushNotificationConfig({ id: task.id });
  equal(await list(), []);
  const receivers = { a: await receive(switchboard), b: await receive(switchboard) };
  for (const [id, receiver] of Object.entries(receivers)) await set(client, task, receiver, id);
  const configs = await list();
  equal(configs.length, 2);
  Object.entries(receivers).forEach(([id, receiver], index) => shows(configs[index], task, receiver, id));
  await client.cancelTask({ id: task.id });
  for (const receiver of Object.values(receivers)) {
    equal(states(await receiver.told(task.id, ends)), ["canceled"]);
  }
});

test("push-delete", async (switchboard) => {
  const client = await switchboard.client("probe", { polling: true });
  const task = await send(client, "hold");
  const drop = (id) => client.deleteTaskPushNotificationConfig({ id: task.id, pushNotificationConfigId: id });
  const list = () => client.listTaskPushNotificationConfig({ id: task.id });
  const [deleted, kept] = [await receive(switchboard), await receive(switchboard)];
  await set(client, task, deleted, "deleted");
  await set(client, task, kept, "kept");
  await drop("deleted");
  await failsWith(TaskNotFoundError, () => get(client, task, "deleted"));
  const configs = await list();
  equal(configs.length, 1);
  shows(configs[0], task, kept, "kept");
  await client.cancelTask({ id: task.id });
  equal(states(await kept.told(task.id, ends)), ["canceled"]);
  deleted.isQuiet();
  for (let time = 0; time < 2; time += 1) {
    await drop("kept");
    equal(await list(), []);
  }
});

test("push-send-blocking", async (switchboard) => {
  const client = await switchboard.client("probe");
  const receiver = await receive(switchboard);
  const configuration = { pushNotificationConfig: hook(receiver) };
  const task = await client.sendMessage({ message: message("hello"), configuration });
  equal(task.status.state, "completed");
  const told = await receiver.told(task.id, ends);
  equal(states(told), ["working", "completed"]);
  equal(
    told.map(({ id, contextId }) => [id, contextId]),
    told.map(() => [task.id, task.contextId]),
  );
  const last = told.at(-1);
  equal(
    last.artifacts.map(({ name, parts }) => [name, text(parts)]),
    [["greeting", "hello"]],
  );
  equal(text(last.history[0].parts), "hello");
  shows(await get(client, task), task, receiver);
});

test("push-send-polling", async (switchboard) => {
  const receiver = await receive(switchboard);
  const client = await switchboard.client("probe", { polling: true, pushNotificationConfig: hook(receiver) });
  const task = await send(client, "sleep:200");
  const told = await receiver.told(task.id, ends);
  equal(states(told), ["working", "completed"]);
  equal(text(told.at(-1).status.message.parts), "slept for 200 ms");
});

test("push-stream", async (switchboard) => {
  const receiver = await receive(switchboard);
  const client = await switchboard.client("probe", { pushNotificationConfig: hook(receiver) });
  const [task] = await collect(stream(client, "stream:200"));
  const told = await receiver.told(task.id, ends);
  equal(states(told), ["working", "completed"]);
  equal(text(told.at(-1).artifacts[0].parts), numbered(200));
});

test("push-input-required", async (switchboard) => {
  const receiver = await receive(switchboard);
  const client = await switchboard.client("probe", { pushNotificationConfig: hook(receiver) });
  const asked = await send(client, "ask");
  equal(asked.status.state, "input-required");
  await send(await switchboard.client("probe"), "again", asked);
  const told = await receiver.told(asked.id, ends);
  equal([states(told).at(-1), states(told).filter((state) => state === "input-required").length], ["completed", 1]);
  equal(text(told.at(-1).status.message.parts), "you said: again");
});

test("push-retry", async (switchboard) => {
  // What was not taken comes again, the same, before anything else does.
  const receiver = await receive(switchboard, { refuse: 1 });
  const client = await switchboard.client("probe", { pushNotificationConfig: hook(receiver) });
  const task = await send(client, "hello");
  equal(states(await receiver.told(task.id, ends)), ["working", "completed"]);
  const [refused, again] = receiver.deliveries;
  equal([refused.taken, again.taken], [false, true]);
  equal([again.id, again.body], [refused.id, refused.body]);
});

test("push-after-end", async (switchboard) => {
  const client = await switchboard.client("probe");
  const task = await send(client, "hello");
  const receiver = await receive(switchboard);
  await set(client, task, receiver);
  const told = await receiver.told(task.id, ends);
  equal(states(told), ["completed"]);
  equal([told[0].id, text(told[0].artifacts[0].parts)], [task.id, "hello"]);
});

test("push-cancel", async (switchboard) => {
  const receiver = await receive(switchboard);
  const client = await switchboard.client("probe", { polling: true, pushNotificationConfig: hook(receiver) });
  const task = await send(client, "hold");
  while ((await receiver.next()).event.status.state !== "working");
  await client.cancelTask({ id: task.id });
  equal(states(await receiver.told(task.id, ends)), ["working", "canceled"]);
});

test("error-push-refused", async (switchboard) => {
  // A private address, alone and with a message, which is then refused; a webhook and a task that are not there.
  const client = await switchboard.client("probe");
  const task = await send(client, "ask");
  const pushNotificationConfig = hook({ url: "http://192.168.7.7/hook" });
  const invalid = async (call) => {
    const error = await failsWith(Error, call);
    // It has no class for this error, so what it was is in its words.
    holds(/url.*-32602/.test(error.message), `the error says what is wrong: ${error.message}`);
  };
  await invalid(() => client.setTaskPushNotificationConfig({ taskId: task.id, pushNotificationConfig }));
  await invalid(() => client.sendMessage({ message: message("hello"), configuration: { pushNotificationConfig } }));
  await failsWith(TaskNotFoundError, () => get(client, task));
  const receiver = await receive(switchboard);
  await failsWith(TaskNotFoundError, () => set(client, { id: randomUUID() }, receiver));
});

test(
  "error-push-not-supported",
  async (switchboard) => {
    // The server with a key has no webhooks.
    const client = await switchboard.client("probe");
    const task = await send(client, "ask");
    const config = { taskId: task.id, pushNotificationConfig: { id: "hook", url: "https://example.com/hook" } };
    const named = { id: task.id, pushNotificationConfigId: "hook" };
    // The client asks the card first; the transport asks the server.
    for (const target of [client, client.transport]) {
      for (const call of [
        () => target.setTaskPushNotificationConfig(config),
        () => target.getTaskPushNotificationConfig(named),
        () => target.listTaskPushNotificationConfig({ id: task.id }),
        () => target.deleteTaskPushNotificationConfig(named),
      ]) {
        await failsWith(PushNotificationNotSupportedError, call);
      }
    }
  },
  { keyed: true },
);
