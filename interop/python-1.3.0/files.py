"""Files as the agent gets them and as this client gets them, byte by byte, in both versions. An echo would not show what
is wrong on both ways: over HTTP+JSON 0.3 this SDK encodes files as base64 twice, and decodes them twice.
"""

from a2a.client import A2ACardResolver
from a2a.helpers import get_message_text, get_raw_parts, new_raw_part
from a2a.types import GetTaskRequest
from runner import CONTENTS, EVERY_BYTE, digest, equal, test
from switchboard import request


async def connected(switchboard, streaming, version):
    resolver = A2ACardResolver(await switchboard.http(), f"{switchboard.address}/a2a/probe")
    card = await resolver.get_agent_card(http_kwargs={"headers": {"A2A-Version": version}})
    return (await switchboard.factory(streaming=streaming)).create(card)


async def ended(client, *parts):
    """The task, once it has ended."""
    events = [event async for event in client.send_message(request(*parts))]
    task_id = next(event.task.id for event in events if event.HasField("task"))
    return events, await client.get_task(GetTaskRequest(id=task_id))


async def inspected(switchboard, version):
    for streaming in (False, True):
        client = await connected(switchboard, streaming, version)
        for content in CONTENTS:
            part = new_raw_part(content, media_type="application/octet-stream", filename="sent.bin")
            _, task = await ended(client, "digest", part)
            equal(get_message_text(task.status.message), digest(content))
            equal(get_raw_parts(task.history[0].parts), [content])


async def produced(switchboard, version):
    for streaming in (False, True):
        client = await connected(switchboard, streaming, version)
        events, task = await ended(client, "file:bytes")
        equal(get_raw_parts(task.artifacts[0].parts), [EVERY_BYTE])
        artifacts = [event.artifact_update.artifact for event in events if event.HasField("artifact_update")]
        artifacts += [artifact for event in events if event.HasField("task") for artifact in event.task.artifacts]
        equal([get_raw_parts(artifact.parts) for artifact in artifacts], [[EVERY_BYTE]])


@test
async def file_inspected(switchboard):
    await inspected(switchboard, "1.0")


@test
async def file_inspected_fallback(switchboard):
    await inspected(switchboard, "0.3")


@test
async def file_produced(switchboard):
    await produced(switchboard, "1.0")


@test
async def file_produced_fallback(switchboard):
    await produced(switchboard, "0.3")
