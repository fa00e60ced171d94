// Agents of all SDKs behind the hub, called with this SDK's client: the servers say what they do. Whatever version and
// binding an agent speaks, the caller's own hold.

import { DefaultAgentCardResolver } from "@a2a-js/sdk/client";
import { CONTENTS, collect, equal, first, holds, hubTest, main, numbered, until } from "../runner.mjs";
import { ends, hook, receive, states } from "./push.mjs";
import { Switchboard, chunks, message, send, stream, text } from "./switchboard.mjs";

const texts = (task) => task.artifacts.map((artifact) => text(artifact.parts));

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

hubTest("cancel", async (switchboard, agent) => {
  const client = await switchboard.client(agent, { polling: true });
  const task = await send(client, "wait");
  await until(
    () => client.getTask({ id: task.id }),
    (task) => task.status.state === "working",
  );
  const canceled = await client.cancelTask({ id: task.id });
  equal([canceled.id, canceled.status.state], [task.id, "canceled"]);
});

hubTest("endings", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const { status: failed } = await send(client, "fail");
  equal([failed.state, text(failed.message.parts)], ["failed", "it did not work"]);
  const { status: rejected } = await send(client, "juggle");
  equal([rejected.state, text(rejected.message.parts)], ["rejected", "juggle is nothing this agent does"]);
});

hubTest("get-and-list", async (switchboard, agent) => {
  // This client has no call for listing tasks.
  const client = await switchboard.client(agent);
  const sent = await send(client, "echo hello");
  const task = await client.getTask({ id: sent.id });
  equal([task.id, task.contextId, task.status.state], [sent.id, sent.contextId, "completed"]);
  equal(text(task.history[0].parts), "echo hello");
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

hubTest("push", async (switchboard, agent) => {
  const client = await switchboard.client(agent);
  const receiver = await receive(switchboard);
  const configuration = { pushNotificationConfig: hook(receiver) };
  const task = await client.sendMessage({ message: message("echo hello"), configuration });
  equal(states(await receiver.told(task.id, ends)).at(-1), "completed");
});

await main((address, binding) => new Switchboard(address, binding));
