// Files as the agent gets them and as this client gets them, byte by byte, in both versions: an echo would not show what is
// wrong on both ways.

import { CONTENTS, EVERY_BYTE, collect, digest, equal, test } from "../runner.mjs";
import { send, stream, text } from "./switchboard.mjs";

const decoded = (part) => [part.content.$case, [...part.content.value]];

/** A client that speaks the version of the card that is asked for. */
async function connected(switchboard, version) {
  const response = await fetch(`${switchboard.address}/a2a/probe/.well-known/agent-card.json`, {
    headers: { "A2A-Version": version },
  });
  return switchboard.factory().createFromAgentCard(await response.json());
}

for (const [version, suffix] of [
  ["1.0", ""],
  ["0.3", "-fallback"],
]) {
  test(`file-inspected${suffix}`, async (switchboard) => {
    const client = await connected(switchboard, version);
    for (const content of CONTENTS) {
      const file = { raw: content.toString("base64"), mediaType: "application/octet-stream", filename: "sent.bin" };
      const task = await send(client, ["digest", file]);
      equal(switchboard.lastRequest.headers.get("a2a-version"), version);
      equal(text(task.status.message.parts), digest(content));
      const again = await client.getTask({ id: task.id, tenant: "" });
      equal(decoded(again.history[0].parts[1]), ["raw", [...content]]);
      const last = (await collect(stream(client, ["digest", file]))).at(-1).payload.value;
      equal(text(last.status.message.parts), digest(content));
    }
  });

  test(`file-produced${suffix}`, async (switchboard) => {
    const client = await connected(switchboard, version);
    const task = await send(client, "file:bytes");
    for (const { artifacts } of [task, await client.getTask({ id: task.id, tenant: "" })]) {
      equal(decoded(artifacts[0].parts[0]), ["raw", [...EVERY_BYTE]]);
    }
    const events = await collect(stream(client, "file:bytes"));
    const updates = events.map(({ payload }) => payload).filter(({ $case }) => $case === "artifactUpdate");
    equal(
      updates.map(({ value }) => decoded(value.artifact.parts[0])),
      [["raw", [...EVERY_BYTE]]],
    );
  });
}
