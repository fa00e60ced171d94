"""Python a2a-sdk 0.3.26 as a client of Switchboard, the way its users hold it: a card from the agent's address, a
client from ClientFactory, JSON-RPC or HTTP+JSON by the client's own choice.
"""

import base64
import sys
import uuid
from pathlib import Path

from a2a.client import A2ACardResolver, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types import (
    DataPart,
    FilePart,
    FileWithBytes,
    FileWithUri,
    Message,
    MessageSendConfiguration,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskQueryParams,
    TaskState,
    TaskStatusUpdateEvent,
    TextPart,
)

sys.path.append(str(Path(__file__).resolve().parents[1]))
import files  # noqa: E402, F401
import push  # noqa: E402, F401
from runner import COUNTS, KEY, equal, main, numbered, test, until  # noqa: E402
from switchboard import (  # noqa: E402
    NO_EXTENDED_CARD,
    TASK_NOT_CANCELABLE,
    TASK_NOT_FOUND,
    TRANSPORTS,
    UNSUPPORTED_OPERATION,
    connect,
    first,
    message,
    send,
    text,
)


async def collect(events):
    """All events, and the text of their chunks, read at once: this client adds the later chunks to the first one."""
    collected, chunks = [], ""
    async for event in events:
        collected.append(event)
        if isinstance(event, tuple) and isinstance(event[1], TaskArtifactUpdateEvent):
            chunks += text(event[1].artifact.parts)
    return collected, chunks


@test
async def card(switchboard):
    resolver = A2ACardResolver(await switchboard.http(), f"{switchboard.address}/a2a/echo")
    card = await resolver.get_agent_card()
    equal(card.name, "Echo")
    equal([skill.id for skill in card.skills], ["echo"])
    equal((card.capabilities.streaming, card.capabilities.push_notifications), (True, True))
    transports = {card.preferred_transport: card.url} | {i.transport: i.url for i in card.additional_interfaces}
    assert transports[TRANSPORTS[switchboard.binding].value].startswith(f"{switchboard.address}/a2a/echo"), transports


@test
async def root_card(switchboard):
    client = await ClientFactory.connect(switchboard.address, await switchboard.config())
    task = await send(client, "hi")
    equal(task.status.state, TaskState.input_required)


@test(keyed=True)
async def extended_card(switchboard):
    # This SDK's own way to show a key has no part in its HTTP+JSON client.
    http = await switchboard.http(headers={"Authorization": f"Bearer {KEY}"})
    client = await switchboard.client("echo", http=http)
    card = await client.get_card()
    equal(card.name, "Echo")
    path = "/a2a/echo/v1/card" if switchboard.binding == "rest" else "/a2a/echo/jsonrpc"
    equal(switchboard.last_request.url.path, path)


@test
async def version(switchboard):
    """No version header is version 0.3, and the answer is in its words."""
    client = await switchboard.client("probe")
    task = await send(client, "hello")
    assert "a2a-version" not in switchboard.last_request.headers
    body = switchboard.last_response.json()
    if switchboard.binding == "jsonrpc":
        equal((body["result"]["kind"], body["result"]["status"]["state"]), ("task", "completed"))
    else:
        equal(body["task"]["status"]["state"], "TASK_STATE_COMPLETED")
    equal(task.status.state, TaskState.completed)


@test
async def extension_header(switchboard):
    plain = await switchboard.client("probe")
    offered = [extension.uri for extension in (await plain.get_card()).capabilities.extensions]
    client = await switchboard.client("probe", extensions=[offered[0], "https://example.com/not-known"])
    await send(client, "hello")
    equal(switchboard.last_response.headers["x-a2a-extensions"], offered[0])


@test
async def send_blocking(switchboard):
    client = await switchboard.client("probe")
    task = await send(client, "sleep:300")
    equal(task.status.state, TaskState.completed)
    equal(text(task.status.message.parts), "slept for 300 ms")
    assert task.context_id
    # Over HTTP+JSON this client drops the time.
    assert task.status.timestamp or switchboard.binding == "rest"


@test
async def send_polling(switchboard):
    client = await switchboard.client("probe", polling=True)
    task = await send(client, "sleep:500")
    assert task.status.state in (TaskState.submitted, TaskState.working), task.status.state
    done = await until(
        lambda: client.get_task(TaskQueryParams(id=task.id)), lambda task: task.status.state == TaskState.completed
    )
    equal(text(done.status.message.parts), "slept for 500 ms")


@test
async def message_reply(switchboard):
    client = await switchboard.client("probe")
    reply = await send(client, "message")
    assert isinstance(reply, Message), reply
    equal((reply.role, text(reply.parts)), (Role.agent, "a direct message"))


@test
async def stream(switchboard):
    client = await switchboard.client("probe", streaming=True)
    events, chunks = await collect(client.send_message(message("stream:200")))
    (task, update), updates = events[0], [update for _, update in events[1:]]
    assert isinstance(task, Task) and update is None, events[0]
    equal(chunks, numbered(200))
    states = [update for update in updates if isinstance(update, TaskStatusUpdateEvent)]
    equal([update.status.state for update in states][-1], TaskState.completed)
    equal([update.final for update in states], [False] * (len(states) - 1) + [True])
    assert updates[-1] is states[-1]
    equal(text(events[-1][0].artifacts[0].parts), numbered(200))


@test
async def stream_message_reply(switchboard):
    client = await switchboard.client("probe", streaming=True)
    events = [event async for event in client.send_message(message("message"))]
    equal([text(event.parts) for event in events], ["a direct message"])


@test
async def stream_input_required(switchboard):
    client = await switchboard.client("probe", streaming=True)
    events = [event async for event in client.send_message(message("ask"))]
    task, update = events[-1]
    equal((update.status.state, update.final), (TaskState.input_required, True))
    events = [event async for event in client.send_message(message("again", task=task))]
    task, update = events[-1]
    equal((update.status.state, text(update.status.message.parts)), (TaskState.completed, "you said: again"))


@test
async def resubscribe(switchboard):
    http = await switchboard.http()
    dropped = await switchboard.client("probe", streaming=True, http=http)
    task, _ = await first(dropped.send_message(message("hold")))
    await http.aclose()

    client = await switchboard.client("probe", streaming=True)
    updates = client.resubscribe(TaskIdParams(id=task.id))
    again, update = await anext(updates)
    equal((again.id, update), (task.id, None))
    await (await switchboard.client("probe")).cancel_task(TaskIdParams(id=task.id))
    rest = [update async for _, update in updates]
    equal((rest[-1].status.state, rest[-1].final), (TaskState.canceled, True))


@test
async def resubscribe_chunks(switchboard):
    """The Task that opens the second stream and what follows make the whole, without a gap or a repetition."""
    client = await switchboard.client("probe", streaming=True)
    for count in COUNTS:
        http = await switchboard.http()
        dropped = await switchboard.client("probe", streaming=True, http=http)
        task, _ = await first(dropped.send_message(message(f"streamy:{count}")))
        await http.aclose()
        events = client.resubscribe(TaskIdParams(id=task.id))
        try:
            snapshot, _ = await anext(events)
        except A2AClientError:
            continue
        seen = "".join(text(artifact.parts) for artifact in snapshot.artifacts or [])
        _, rest = await collect(events)
        return equal(seen + rest, numbered(count))
    raise AssertionError("every stream ended before the second connection was there")


@test
async def get(switchboard):
    client = await switchboard.client("probe")
    sent = await send(client, "hello", metadata={"shelf": "b4"})
    task = await client.get_task(TaskQueryParams(id=sent.id))
    equal((task.id, task.context_id, task.status.state), (sent.id, sent.context_id, TaskState.completed))
    equal([(artifact.name, text(artifact.parts)) for artifact in task.artifacts], [("greeting", "hello")])
    equal((text(task.history[0].parts), task.history[0].metadata), ("hello", {"shelf": "b4"}))


@test
async def get_history_length(switchboard):
    client = await switchboard.client("guide")
    task = await send(client, "hi")
    task = await send(client, "Ada", task=task)
    task = await send(client, "tasks", task=task)
    whole = await client.get_task(TaskQueryParams(id=task.id))
    assert len(whole.history) >= 3, whole.history
    last = await client.get_task(TaskQueryParams(id=task.id, history_length=1))
    equal(last.history, whole.history[-1:])


@test
async def send_history_length(switchboard):
    client = await switchboard.client("probe")
    task = await send(client, "ask")
    answer = message("again", task=task)
    configuration = MessageSendConfiguration(history_length=1)
    events = [event async for event in client.send_message(answer, configuration=configuration)]
    equal(len(events[0][0].history), 1)


@test
async def cancel(switchboard):
    client = await switchboard.client("probe", polling=True)
    task = await send(client, "hold")
    canceled = await client.cancel_task(TaskIdParams(id=task.id))
    equal((canceled.id, canceled.status.state), (task.id, TaskState.canceled))
    equal((await client.get_task(TaskQueryParams(id=task.id))).status.state, TaskState.canceled)


@test
async def cancel_parked(switchboard):
    client = await switchboard.client("probe")
    task = await send(client, "ask")
    equal((await client.cancel_task(TaskIdParams(id=task.id))).status.state, TaskState.canceled)


@test
async def multi_turn(switchboard):
    client = await switchboard.client("guide")
    asked = await send(client, "hi")
    equal((asked.status.state, text(asked.status.message.parts)), (TaskState.input_required, "Hello! What is your name?"))
    asked = await send(client, "Ada", task=asked)
    equal(asked.status.state, TaskState.input_required)
    assert "Nice to meet you, Ada" in text(asked.status.message.parts)
    told = await send(client, "streams", task=asked)
    equal((told.id, told.status.state), (asked.id, TaskState.completed))
    assert "Last-Event-ID" in text(told.status.message.parts)


@test
async def auth_required(switchboard):
    client = await switchboard.client("probe")
    asked = await send(client, "auth")
    equal(asked.status.state, TaskState.auth_required)
    done = await send(client, "signed in", task=asked)
    equal((done.status.state, text(done.status.message.parts)), (TaskState.completed, "you said: signed in"))


@test
async def endings(switchboard):
    client = await switchboard.client("probe")
    for command, state in {
        "reject": TaskState.rejected,
        "err": TaskState.failed,
        "panic": TaskState.failed,
        "silent": TaskState.failed,
    }.items():
        equal((command, (await send(client, command)).status.state), (command, state))


@test
async def parts_received(switchboard):
    client = await switchboard.client("probe")
    (part,) = (await send(client, "file")).artifacts[0].parts
    content = base64.b64decode(part.root.file.bytes).decode()
    equal((content, part.root.file.mime_type), ("a file from the probe\n", "text/plain"))
    (part,) = (await send(client, "data")).artifacts[0].parts
    equal((part.root.data["probe"], part.root.data["numbers"]), (True, [1, 2, 3]))


@test
async def parts_echoed(switchboard):
    client = await switchboard.client("echo")
    content = base64.b64encode(bytes(range(256))).decode()
    sent = [
        TextPart(text="grüße 🦀"),
        FilePart(file=FileWithBytes(bytes=content, mime_type="application/octet-stream", name="all.bin")),
        FilePart(file=FileWithUri(uri="https://example.com/a.png", mime_type="image/png", name="a.png")),
        DataPart(data={"integer": 7, "fraction": 0.5, "nested": {"list": [True, None, "x"]}}),
    ]
    task = await send(client, *sent)
    received = [part.root for part in task.artifacts[0].parts]
    equal([type(part) for part in received], [type(part) for part in sent])
    equal(received[0].text, sent[0].text)
    equal((received[1].file.bytes, received[1].file.mime_type), (content, "application/octet-stream"))
    equal((received[2].file.uri, received[2].file.mime_type), ("https://example.com/a.png", "image/png"))
    equal(received[3].data, sent[3].data)


@test
async def large_artifact(switchboard):
    client = await switchboard.client("probe", streaming=True)
    events = [event async for event in client.send_message(message("big:1000000"))]
    equal(len(text(events[-1][0].artifacts[0].parts)), 1_000_000)


@test
async def error_task_not_found(switchboard):
    client = await switchboard.client("probe")
    unknown = str(uuid.uuid4())
    await switchboard.refuses(TASK_NOT_FOUND, client.get_task(TaskQueryParams(id=unknown)))
    await switchboard.refuses(TASK_NOT_FOUND, client.cancel_task(TaskIdParams(id=unknown)))
    stray = message("hello")
    stray.task_id = unknown
    await switchboard.refuses(TASK_NOT_FOUND, first(client.send_message(stray)))


@test
async def error_not_cancelable(switchboard):
    client = await switchboard.client("probe")
    task = await send(client, "hello")
    await switchboard.refuses(TASK_NOT_CANCELABLE, client.cancel_task(TaskIdParams(id=task.id)))


@test
async def error_send_to_finished(switchboard):
    client = await switchboard.client("probe")
    task = await send(client, "hello")
    await switchboard.refuses(UNSUPPORTED_OPERATION, send(client, "hello", task=task))


@test
async def error_stream_to_finished(switchboard):
    client = await switchboard.client("probe", streaming=True)
    task = await send(await switchboard.client("probe"), "hello")
    await switchboard.refuses(UNSUPPORTED_OPERATION, first(client.send_message(message("hello", task=task))))


@test(only="jsonrpc")
async def error_resubscribe(switchboard):
    """Not over HTTP+JSON, where this client does not look at the status of a subscription."""
    client = await switchboard.client("probe", streaming=True)
    await switchboard.refuses(TASK_NOT_FOUND, first(client.resubscribe(TaskIdParams(id=str(uuid.uuid4())))))
    task = await send(await switchboard.client("probe"), "hello")
    await switchboard.refuses(UNSUPPORTED_OPERATION, first(client.resubscribe(TaskIdParams(id=task.id))))


@test
async def error_no_extended_card(switchboard):
    """An open server says so on its card, and says it again to a client with a card from other times."""
    resolver = A2ACardResolver(await switchboard.http(), f"{switchboard.address}/a2a/echo")
    card = await resolver.get_agent_card()
    equal(card.supports_authenticated_extended_card, False)
    card.supports_authenticated_extended_card = True
    client = ClientFactory(await switchboard.config()).create(card)
    await switchboard.refuses(NO_EXTENDED_CARD, client.get_card())


if __name__ == "__main__":
    main(connect)
