"""Files as the agent gets them and as this client gets them, byte by byte. An echo would not show what is wrong on both
ways: over HTTP+JSON this SDK encodes files as base64 twice, and decodes them twice.
"""

import base64

from a2a.types import FilePart, FileWithBytes, TaskQueryParams
from runner import CONTENTS, EVERY_BYTE, digest, equal, test
from switchboard import message, text


@test
async def file_inspected(switchboard):
    for streaming in (False, True):
        client = await switchboard.client("probe", streaming=streaming)
        for content in CONTENTS:
            encoded = base64.b64encode(content).decode()
            part = FilePart(file=FileWithBytes(bytes=encoded, mime_type="application/octet-stream", name="sent.bin"))
            events = [event async for event in client.send_message(message("digest", part))]
            task, _ = events[-1]
            equal(text(task.status.message.parts), digest(content))
            task = await client.get_task(TaskQueryParams(id=task.id))
            equal(task.history[0].parts[1].root.file.bytes, encoded)


@test
async def file_produced(switchboard):
    for streaming in (False, True):
        client = await switchboard.client("probe", streaming=streaming)
        events = [event async for event in client.send_message(message("file:bytes"))]
        task, _ = events[-1]
        for task in (task, await client.get_task(TaskQueryParams(id=task.id))):
            (part,) = task.artifacts[0].parts
            equal(base64.b64decode(part.root.file.bytes), EVERY_BYTE)
