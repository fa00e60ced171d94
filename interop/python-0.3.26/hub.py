"""Agents of all SDKs behind the hub, called with this SDK's client: ../behaviours.py says what they do. Whatever version
and binding an agent speaks, the caller's own hold.
"""

import base64
import sys
import uuid
from pathlib import Path

from a2a.client import A2ACardResolver
from a2a.types import (
    DataPart,
    FilePart,
    FileWithBytes,
    FileWithUri,
    MessageSendConfiguration,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskQueryParams,
    TaskState,
)

sys.path.append(str(Path(__file__).resolve().parents[1]))
from push import delete_hook, ends, get_hook, hook, list_hooks, receive, set_hook, shows, states  # noqa: E402
from runner import CONTENTS, equal, hub_test, main, numbered, until  # noqa: E402
from switchboard import (  # noqa: E402
    TASK_NOT_CANCELABLE,
    TASK_NOT_FOUND,
    UNSUPPORTED_OPERATION,
    connect,
    first,
    message,
    send,
    text,
)

# Over HTTP+JSON this client has no calls for webhooks, and does not look at the status of a subscription.
REST = ("rest-0.3",)


def texts(task):
    return [text(artifact.parts) for artifact in task.artifacts]


async def begun(client):
    """A task that waits at its agent until it is canceled."""
    task = await send(client, "wait")
    asked = TaskQueryParams(id=task.id)
    return await until(lambda: client.get_task(asked), lambda task: task.status.state == TaskState.working)


async def ended_by_cancel(client, task, *receivers):
    """Ends a task, which its webhooks are told."""
    await client.cancel_task(TaskIdParams(id=task.id))
    for receiver in receivers:
        equal(states(await receiver.told(task.id, ends))[-1], "canceled")


async def streamed(client, sent):
    """The text of all chunks and the last event, read at once: this client adds the later chunks to the first one."""
    told, last = "", None
    async for task, last in client.send_message(sent):
        if isinstance(last, TaskArtifactUpdateEvent):
            told += text(last.artifact.parts)
    return told, task, last


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
async def send_polling(switchboard, agent):
    client = await switchboard.client(agent, polling=True)
    task = await send(client, "stream 50")
    asked = TaskQueryParams(id=task.id)
    done = await until(lambda: client.get_task(asked), lambda task: task.status.state == TaskState.completed)
    equal(texts(done), [numbered(50)])


@hub_test
async def message_reply(switchboard, agent):
    task = await send(await switchboard.client(agent), "reply hello")
    equal((task.status.state, text(task.status.message.parts)), (TaskState.completed, "hello"))


@hub_test
async def stream(switchboard, agent):
    client = await switchboard.client(agent, streaming=True)
    told, _, last = await streamed(client, message("stream 50"))
    equal((told, last.status.state, last.final), (numbered(50), TaskState.completed, True))


@hub_test
async def multi_turn(switchboard, agent):
    client = await switchboard.client(agent)
    asked = await send(client, "ask")
    equal((asked.status.state, text(asked.status.message.parts)), (TaskState.input_required, "what is your name?"))
    told = await send(client, "Ada", task=asked)
    equal((told.id, told.status.state, texts(told)), (asked.id, TaskState.completed, ["hello Ada"]))


@hub_test
async def stream_input_required(switchboard, agent):
    client = await switchboard.client(agent, streaming=True)
    _, task, last = await streamed(client, message("ask"))
    equal((last.status.state, last.final), (TaskState.input_required, True))
    told, _, last = await streamed(client, message("Ada", task=task))
    equal((told, last.status.state, last.final), ("hello Ada", TaskState.completed, True))


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
async def get(switchboard, agent):
    client = await switchboard.client(agent)
    sent = await send(client, "echo hello")
    task = await client.get_task(TaskQueryParams(id=sent.id))
    equal((task.id, task.context_id, task.status.state), (sent.id, sent.context_id, TaskState.completed))
    equal((text(task.history[0].parts), texts(task)), ("echo hello", ["hello"]))


@hub_test
async def history_length(switchboard, agent):
    client = await switchboard.client(agent)
    answer = message("Ada", task=await send(client, "ask"))
    told, _ = await first(client.send_message(answer, configuration=MessageSendConfiguration(history_length=1)))
    equal((told.status.state, len(told.history)), (TaskState.completed, 1))
    whole = await client.get_task(TaskQueryParams(id=told.id))
    assert len(whole.history) > 1, whole.history
    last = await client.get_task(TaskQueryParams(id=told.id, history_length=1))
    equal(last.history, whole.history[-1:])


@hub_test
async def cancel(switchboard, agent):
    client = await switchboard.client(agent, polling=True)
    task = await begun(client)
    canceled = await client.cancel_task(TaskIdParams(id=task.id))
    equal((canceled.id, canceled.status.state), (task.id, TaskState.canceled))


@hub_test
async def cancel_parked(switchboard, agent):
    client = await switchboard.client(agent)
    task = await send(client, "ask")
    equal((await client.cancel_task(TaskIdParams(id=task.id))).status.state, TaskState.canceled)


@hub_test
async def endings(switchboard, agent):
    client = await switchboard.client(agent)
    failed = await send(client, "fail")
    equal((failed.status.state, text(failed.status.message.parts)), (TaskState.failed, "it did not work"))
    rejected = await send(client, "juggle")
    equal(rejected.status.state, TaskState.rejected)
    equal(text(rejected.status.message.parts), "juggle is nothing this agent does")


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
async def parts_echoed(switchboard, agent):
    client = await switchboard.client(agent)
    data = DataPart(data={"integer": 7, "nested": {"list": [True, None, "x"]}})
    file = FilePart(file=FileWithUri(uri="https://example.com/a.png", mime_type="image/png"))
    task = await send(client, "file", file, data)
    equal(task.status.state, TaskState.completed)
    returned = [part.root for part in task.artifacts[0].parts]
    equal((returned[0].file.uri, returned[1].data), (file.file.uri, data.data))


@hub_test
async def push_inline(switchboard, agent):
    receiver = await receive(switchboard)
    client = await switchboard.client(agent, hook=hook(receiver))
    task = await send(client, "echo hello")
    equal(states(await receiver.told(task.id, ends))[-1], "completed")


@hub_test
async def push_set_get(switchboard, agent):
    client = await switchboard.client(agent, polling=True)
    task = await begun(client)
    receiver = await receive(switchboard)
    shows(await set_hook(client, task, receiver), task, receiver)
    shows(await get_hook(client, task), task, receiver)
    await ended_by_cancel(client, task, receiver)


@hub_test(lacks=REST)
async def push_list_delete(switchboard, agent):
    client = await switchboard.client(agent, polling=True)
    task = await begun(client)
    receivers = {id: await receive(switchboard) for id in ("deleted", "kept")}
    for id, receiver in receivers.items():
        await set_hook(client, task, receiver, id)
    for answer, (id, receiver) in zip(await list_hooks(switchboard, client, task), receivers.items(), strict=True):
        shows(answer, task, receiver, id)
    await delete_hook(switchboard, client, task, "deleted")
    (answer,) = await list_hooks(switchboard, client, task)
    shows(answer, task, receivers["kept"], "kept")
    await ended_by_cancel(client, task, receivers["kept"])
    receivers["deleted"].is_quiet()


@hub_test
async def error_task_not_found(switchboard, agent):
    client = await switchboard.client(agent)
    unknown = str(uuid.uuid4())
    await switchboard.refuses(TASK_NOT_FOUND, client.get_task(TaskQueryParams(id=unknown)))
    await switchboard.refuses(TASK_NOT_FOUND, client.cancel_task(TaskIdParams(id=unknown)))
    stray = message("echo hello")
    stray.task_id = unknown
    await switchboard.refuses(TASK_NOT_FOUND, first(client.send_message(stray)))


@hub_test(lacks=REST)
async def error_resubscribe(switchboard, agent):
    client = await switchboard.client(agent, streaming=True)
    task = await send(await switchboard.client(agent), "echo hello")
    await switchboard.refuses(UNSUPPORTED_OPERATION, first(client.resubscribe(TaskIdParams(id=task.id))))
    await switchboard.refuses(TASK_NOT_FOUND, first(client.resubscribe(TaskIdParams(id=str(uuid.uuid4())))))


@hub_test
async def errors(switchboard, agent):
    client = await switchboard.client(agent)
    task = await send(client, "echo hello")
    await switchboard.refuses(TASK_NOT_CANCELABLE, client.cancel_task(TaskIdParams(id=task.id)))
    await switchboard.refuses(UNSUPPORTED_OPERATION, send(client, "echo again", task=task))
    equal((await client.get_task(TaskQueryParams(id=task.id))).status.state, TaskState.completed)


if __name__ == "__main__":
    main(connect, versions=("0.3",))
