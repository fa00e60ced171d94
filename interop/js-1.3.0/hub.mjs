// Agents of all SDKs behind the hub, called with this SDK's client: the servers say what they do. Whatever version and
// binding an agent speaks, the caller's own hold.

import { ListTasksRequest } from "@a2a-js/sdk";
import { DefaultAgentCardResolver } from "@a2a-js/sdk/client";
import { CONTENTS, collect, equal, first, holds, hubTest, main, numbered, until } from "../runner.mjs";
import { ends, inline, receive, states } from "./push.mjs";
import { Switchboard, chunks, request, send, state, stream, text } from "./switchboard.mjs";

const texts = (task) => task.artifacts.map((artifact) => text(artifact.parts));
const named = (task) => ({ id: task.id, tenant: "" });

hubTest("card", async (switchboard, agent) => {
  const card = await new DefaultAgentCardResolver().resolve(`${switchboard.address}/a2a/${agent}/`);
  equal(
    card.skills.map((skill) => skill.id),
    ["behave"],
  );
  equal([card.capabilities.streaming, card.capabilities.pushNotifications], [true, true]);
  for (const { url } of card.supportedInterfaces) {
    holds(url.startsWith(`${switchboard.address}/a2a/${agent}`), `the card points to ${url}`);
  }
});

hubTest("send-blocking", async (switchboard, agent) => {
  const task = await send(await switchboard.client(agent), "echo hello");
  equal([state(task), texts(task)], ["COMPLETED", ["hello"]]);
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

hubTest("cancel", async (switchboard, agent) => {
  const client = await switchboard.client(agent, { polling: true });
  const task = await send(client, "wait");
  await until(
    () => client.getTask(named(task)),
    (task) => state(task) === "WORKING",
  );
  const canceled = await client.cancelTask(named(task));
  equal([canceled.id, state(canceled)], [task.id, "CANCELED"]);
});

hubTest("endings", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const failed = await send(client, "fail");
  equal([state(failed), text(failed.status.message.parts)], ["FAILED", "it did not work"]);
  const rejected = await send(client, "juggle");
  equal([state(rejected), text(rejected.status.message.parts)], ["REJECTED", "juggle is nothing this agent does"]);
});

hubTest("get-and-list", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const sent = await send(client, "echo hello");
  const task = await client.getTask(named(sent));
  equal([task.id, task.contextId, state(task)], [sent.id, sent.contextId, "COMPLETED"]);
  equal(text(task.history[0].parts), "echo hello");
  const page = await client.listTasks(ListTasksRequest.fromJSON({ contextId: sent.contextId }));
  equal(
    page.tasks.map(({ id }) => id),
    [sent.id],
  );
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

hubTest("push", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const receiver = await receive(switchboard);
  const task = await client.sendMessage(request("echo hello", undefined, inline(receiver, { id: "hook" })));
  equal(states(await receiver.told(task.id, ends)).at(-1), "COMPLETED");
});

await main((address, binding) => new Switchboard(address, binding));
