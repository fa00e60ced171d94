"""Agents of all SDKs behind the hub, called with this SDK's client: ../behaviours.py says what they do. Whatever version
and binding an agent speaks, the caller's own hold.
"""

import base64
import sys
from pathlib import Path

from a2a.client import A2ACardResolver
from a2a.types import FilePart, FileWithBytes, TaskArtifactUpdateEvent, TaskIdParams, TaskQueryParams, TaskState

sys.path.append(str(Path(__file__).resolve().parents[1]))
from push import ends, hook, receive, states  # noqa: E402
from runner import CONTENTS, equal, hub_test, main, numbered, until  # noqa: E402
from switchboard import connect, first, message, send, text  # noqa: E402


def texts(task):
    return [text(artifact.parts) for artifact in task.artifacts]


@hub_test
async def card(switchboard, agent):
    resolver = A2ACardResolver(await switchboard.http(), f"{switchboard.address}/a2a/{agent}")
    card = await resolver.get_agent_card()
    equal([skill.id for skill in card.skills], ["behave"])
    equal((card.capabilities.streaming, card.capabilities.push_notifications), (True, True))
    for url in [card.url, *(interface.url for interface in card.additional_interfaces)]:
        assert url.startswith(f"{switchboard.address}/a2a/{agent}"), url


@hub_test
async def send_blocking(switchboard, agent):
    task = await send(await switchboard.client(agent), "echo hello")
    equal((task.status.state, texts(task)), (TaskState.completed, ["hello"]))


@hub_test
async def message_reply(switchboard, agent):
    task = await send(await switchboard.client(agent), "reply hello")
    equal((task.status.state, text(task.status.message.parts)), (TaskState.completed, "hello"))


@hub_test
async def stream(switchboard, agent):
    client = await switchboard.client(agent, streaming=True)
    told, last = "", None
    # Read at once: this client adds the later chunks to the first one.
    async for _, last in client.send_message(message("stream 50")):
        if isinstance(last, TaskArtifactUpdateEvent):
            told += text(last.artifact.parts)
    equal((told, last.status.state, last.final), (numbered(50), TaskState.completed, True))


@hub_test
async def multi_turn(switchboard, agent):
    client = await switchboard.client(agent)
    asked = await send(client, "ask")
    equal((asked.status.state, text(asked.status.message.parts)), (TaskState.input_required, "what is your name?"))
    told = await send(client, "Ada", task=asked)
    equal((told.id, told.status.state, texts(told)), (asked.id, TaskState.completed, ["hello Ada"]))


@hub_test
async def resubscribe(switchboard, agent):
    http = await switchboard.http()
    dropped = await switchboard.client(agent, streaming=True, http=http)
    task, _ = await first(dropped.send_message(message("wait")))
    await http.aclose()
    updates = (await switchboard.client(agent, streaming=True)).resubscribe(TaskIdParams(id=task.id))
    again, _ = await anext(updates)
    equal(again.id, task.id)
    await (await switchboard.client(agent)).cancel_task(TaskIdParams(id=task.id))
    rest = [update async for _, update in updates]
    equal((rest[-1].status.state, rest[-1].final), (TaskState.canceled, True))


@hub_test
async def cancel(switchboard, agent):
    client = await switchboard.client(agent, polling=True)
    task = await send(client, "wait")
    asked = TaskQueryParams(id=task.id)
    await until(lambda: client.get_task(asked), lambda task: task.status.state == TaskState.working)
    canceled = await client.cancel_task(TaskIdParams(id=task.id))
    equal((canceled.id, canceled.status.state), (task.id, TaskState.canceled))


@hub_test
async def endings(switchboard, agent):
    client = await switchboard.client(agent)
    failed = await send(client, "fail")
    equal((failed.status.state, text(failed.status.message.parts)), (TaskState.failed, "it did not work"))
    rejected = await send(client, "juggle")
    equal(rejected.status.state, TaskState.rejected)
    equal(text(rejected.status.message.parts), "juggle is nothing this agent does")


@hub_test
async def get_and_list(switchboard, agent):
    """This client has no call for listing tasks."""
    client = await switchboard.client(agent)
    sent = await send(client, "echo hello")
    task = await client.get_task(TaskQueryParams(id=sent.id))
    equal((task.id, task.context_id, task.status.state), (sent.id, sent.context_id, TaskState.completed))
    equal(text(task.history[0].parts), "echo hello")


@hub_test
async def file_inspected(switchboard, agent):
    client = await switchboard.client(agent)
    for content in CONTENTS:
        encoded = base64.b64encode(content).decode()
        part = FilePart(file=FileWithBytes(bytes=encoded, mime_type="application/octet-stream", name="sent.bin"))
        task = await send(client, "inspect", part)
        for task in (task, await client.get_task(TaskQueryParams(id=task.id))):
            said, returned = task.artifacts[0].parts
            equal(said.root.text, content.hex())
            equal(base64.b64decode(returned.root.file.bytes), content[::-1])


@hub_test
async def push(switchboard, agent):
    receiver = await receive(switchboard)
    client = await switchboard.client(agent, hook=hook(receiver))
    task = await send(client, "echo hello")
    equal(states(await receiver.told(task.id, ends))[-1], "completed")


if __name__ == "__main__":
    main(connect)
