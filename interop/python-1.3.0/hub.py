"""Agents of all SDKs behind the hub, called with this SDK's client: ../behaviours.py says what they do. Whatever version
and binding an agent speaks, the caller's own hold.
"""

import sys
from pathlib import Path

from a2a.client import A2ACardResolver
from a2a.helpers import get_artifact_text, get_message_text, get_raw_parts, new_raw_part
from a2a.types import CancelTaskRequest, GetTaskRequest, ListTasksRequest, SubscribeToTaskRequest, TaskState

sys.path.append(str(Path(__file__).resolve().parents[1]))
from push import ends, hook, receive, states  # noqa: E402
from runner import CONTENTS, equal, hub_test, main, numbered, until  # noqa: E402
from switchboard import chunks, connect, first, request, send  # noqa: E402


async def begun(client):
    """A task that waits at its agent until it is canceled."""
    task = await send(client, "wait")
    return await until(
        lambda: client.get_task(GetTaskRequest(id=task.id)),
        lambda task: task.status.state == TaskState.TASK_STATE_WORKING,
    )


@hub_test
async def card(switchboard, agent):
    resolver = A2ACardResolver(await switchboard.http(), f"{switchboard.address}/a2a/{agent}")
    card = await resolver.get_agent_card()
    equal([skill.id for skill in card.skills], ["behave"])
    equal((card.capabilities.streaming, card.capabilities.push_notifications), (True, True))
    for interface in card.supported_interfaces:
        assert interface.url.startswith(f"{switchboard.address}/a2a/{agent}"), interface.url


@hub_test
async def send_blocking(switchboard, agent):
    task = await send(await switchboard.client(agent), "echo hello")
    equal(task.status.state, TaskState.TASK_STATE_COMPLETED)
    equal([get_artifact_text(artifact) for artifact in task.artifacts], ["hello"])


@hub_test
async def message_reply(switchboard, agent):
    task = await send(await switchboard.client(agent), "reply hello")
    equal((task.status.state, get_message_text(task.status.message)), (TaskState.TASK_STATE_COMPLETED, "hello"))


@hub_test
async def stream(switchboard, agent):
    client = await switchboard.client(agent, streaming=True)
    events = [event async for event in client.send_message(request("stream 50"))]
    equal((events[0].WhichOneof("payload"), chunks(events)), ("task", numbered(50)))
    equal(events[-1].status_update.status.state, TaskState.TASK_STATE_COMPLETED)


@hub_test
async def multi_turn(switchboard, agent):
    client = await switchboard.client(agent)
    asked = await send(client, "ask")
    equal(asked.status.state, TaskState.TASK_STATE_INPUT_REQUIRED)
    equal(get_message_text(asked.status.message), "what is your name?")
    told = await send(client, "Ada", task=asked)
    equal((told.id, told.status.state), (asked.id, TaskState.TASK_STATE_COMPLETED))
    equal([get_artifact_text(artifact) for artifact in told.artifacts], ["hello Ada"])


@hub_test
async def resubscribe(switchboard, agent):
    http = await switchboard.http()
    dropped = await switchboard.client(agent, streaming=True, http=http)
    task = (await first(dropped.send_message(request("wait")))).task
    await http.aclose()
    events = (await switchboard.client(agent, streaming=True)).subscribe(SubscribeToTaskRequest(id=task.id))
    equal((await anext(events)).task.id, task.id)
    await (await switchboard.client(agent)).cancel_task(CancelTaskRequest(id=task.id))
    rest = [event async for event in events]
    equal(rest[-1].status_update.status.state, TaskState.TASK_STATE_CANCELED)


@hub_test
async def cancel(switchboard, agent):
    client = await switchboard.client(agent, polling=True)
    task = await begun(client)
    canceled = await client.cancel_task(CancelTaskRequest(id=task.id))
    equal((canceled.id, canceled.status.state), (task.id, TaskState.TASK_STATE_CANCELED))


@hub_test
async def endings(switchboard, agent):
    client = await switchboard.client(agent)
    failed = await send(client, "fail")
    equal((failed.status.state, get_message_text(failed.status.message)), (TaskState.TASK_STATE_FAILED, "it did not work"))
    rejected = await send(client, "juggle")
    equal(rejected.status.state, TaskState.TASK_STATE_REJECTED)
    equal(get_message_text(rejected.status.message), "juggle is nothing this agent does")


@hub_test
async def get_and_list(switchboard, agent):
    client = await switchboard.client(agent)
    sent = await send(client, "echo hello")
    task = await client.get_task(GetTaskRequest(id=sent.id))
    equal((task.id, task.context_id, task.status.state), (sent.id, sent.context_id, TaskState.TASK_STATE_COMPLETED))
    equal(get_message_text(task.history[0]), "echo hello")
    page = await client.list_tasks(ListTasksRequest(context_id=sent.context_id))
    equal([task.id for task in page.tasks], [sent.id])


@hub_test
async def file_inspected(switchboard, agent):
    client = await switchboard.client(agent)
    for content in CONTENTS:
        part = new_raw_part(content, media_type="application/octet-stream", filename="sent.bin")
        task = await send(client, "inspect", part)
        for task in (task, await client.get_task(GetTaskRequest(id=task.id))):
            (artifact,) = task.artifacts
            equal((get_artifact_text(artifact), get_raw_parts(artifact.parts)), (content.hex(), [content[::-1]]))


@hub_test
async def push(switchboard, agent):
    client = await switchboard.client(agent)
    receiver = await receive(switchboard)
    task = await send(client, "echo hello", task_push_notification_config=hook(receiver, id="hook"))
    equal(states(await receiver.told(task.id, ends))[-1], "COMPLETED")


if __name__ == "__main__":
    main(connect)
