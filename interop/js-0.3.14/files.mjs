// Files as the agent gets them and as this client gets them, byte by byte: an echo would not show what is wrong on both
// ways.

import { CONTENTS, EVERY_BYTE, collect, digest, equal, test } from "../runner.mjs";
import { send, stream, text } from "./switchboard.mjs";

const decoded = (part) => [...Buffer.from(part.file.bytes, "base64")];

test("file-inspected", async (switchboard) => {
  const client = await switchboard.client("probe");
  for (const content of CONTENTS) {
    const bytes = content.toString("base64");
    const parts = ["digest", { kind: "file", file: { bytes, mimeType: "application/octet-stream", name: "sent.bin" } }];
    const task = await send(client, parts);
    equal(text(task.status.message.parts), digest(content));
    equal((await client.getTask({ id: task.id })).history[0].parts[1].file.bytes, bytes);
    const last = (await collect(stream(client, parts))).at(-1);
    equal(text(last.status.message.parts), digest(content));
  }
});

test("file-produced", async (switchboard) => {
  const client = await switchboard.client("probe");
  const task = await send(client, "file:bytes");
  for (const { artifacts } of [task, await client.getTask({ id: task.id })]) {
    equal(decoded(artifacts[0].parts[0]), [...EVERY_BYTE]);
  }
  const events = await collect(stream(client, "file:bytes"));
  const updates = events.filter((event) => event.kind === "artifact-update");
  equal(
    updates.map((event) => decoded(event.artifact.parts[0])),
    [[...EVERY_BYTE]],
  );
});
