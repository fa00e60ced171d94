"""Python a2a-sdk 1.3.0 as a client of Switchboard, the way its users hold it: a card from the agent's address, a client
from ClientFactory, JSON-RPC or HTTP+JSON by the client's own choice. It speaks 1.0, and 0.3 to a card that has only that.
"""

import sys
import uuid
from pathlib import Path

from a2a.client import A2ACardResolver, AuthInterceptor, ClientCallContext
from a2a.client.service_parameters import ServiceParametersFactory, with_a2a_extensions
from a2a.helpers import (
    get_artifact_text,
    get_data_parts,
    get_message_text,
    get_raw_parts,
    get_url_parts,
    new_data_part,
    new_raw_part,
    new_text_part,
    new_url_part,
)
from a2a.types import (
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    ListTasksRequest,
    Role,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.errors import (
    A2AError,
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

sys.path.append(str(Path(__file__).resolve().parents[1]))
import files  # noqa: E402, F401
import push  # noqa: E402, F401
from runner import COUNTS, KEY, equal, fails_with, main, numbered, test, until  # noqa: E402
from switchboard import TRANSPORTS, Key, chunks, connect, first, request, send  # noqa: E402

@test
async def card(switchboard):
    resolver = A2ACardResolver(await switchboard.http(), f"{switchboard.address}/a2a/echo")
    card = await resolver.get_agent_card()
    equal(card.name, "Echo")
    equal([skill.id for skill in card.skills], ["echo"])
    equal((card.capabilities.streaming, card.capabilities.push_notifications), (True, True))
    interfaces = {(i.protocol_binding, i.protocol_version): i.url for i in card.supported_interfaces}
    url = interfaces[TRANSPORTS[switchboard.binding], "1.0"]
    assert url.startswith(f"{switchboard.address}/a2a/echo"), url


@test
async def root_card(switchboard):
    client = await (await switchboard.factory()).create_from_url(switchboard.address)
    task = await send(client, "hi")
    equal(task.status.state, TaskState.TASK_STATE_INPUT_REQUIRED)


@test(keyed=True)
async def extended_card(switchboard):
    client = await switchboard.client("echo", interceptors=[AuthInterceptor(Key())])
    card = await client.get_extended_agent_card(GetExtendedAgentCardRequest())
    equal(card.name, "Echo")
    equal(switchboard.last_request.headers["authorization"], f"Bearer {KEY}")
    path = "/a2a/echo/extendedAgentCard" if switchboard.binding == "rest" else "/a2a/echo"
    equal(switchboard.last_request.url.path, path)


@test
async def version(switchboard):
    """A card with both versions makes this client speak 1.0."""
    client = await switchboard.client("probe")
    await send(client, "hello")
    equal(switchboard.last_request.headers["a2a-version"], "1.0")
    body = switchboard.last_response.json()
    task = (body["result"] if switchboard.binding == "jsonrpc" else body)["task"]
    equal(task["status"]["state"], "TASK_STATE_COMPLETED")


@test
async def version_fallback(switchboard):
    """The card for version 0.3 makes this client speak 0.3."""
    resolver = A2ACardResolver(await switchboard.http(), f"{switchboard.address}/a2a/probe")
    card = await resolver.get_agent_card(http_kwargs={"headers": {"A2A-Version": "0.3"}})
    equal({interface.protocol_version[:3] for interface in card.supported_interfaces}, {"0.3"})
    client = (await switchboard.factory(streaming=True)).create(card)
    events = [event async for event in client.send_message(request("stream:20"))]
    equal(switchboard.last_request.headers["a2a-version"][:3], "0.3")
    equal(chunks(events), numbered(20))
    task = await client.get_task(GetTaskRequest(id=events[0].task.id))
    equal(task.status.state, TaskState.TASK_STATE_COMPLETED)
    # Over HTTP+JSON this client reads no more of a 0.3 error than the status.
    rest = switchboard.binding == "rest"
    await fails_with(
        A2AError if rest else TaskNotCancelableError, client.cancel_task(CancelTaskRequest(id=task.id))
    )
    await fails_with(
        A2AError if rest else TaskNotFoundError, client.get_task(GetTaskRequest(id=str(uuid.uuid4())))
    )

    held = (await first(client.send_message(request("hold")))).task
    subscription = client.subscribe(SubscribeToTaskRequest(id=held.id))
    equal((await anext(subscription)).task.id, held.id)
    canceled = await client.cancel_task(CancelTaskRequest(id=held.id))
    equal(canceled.status.state, TaskState.TASK_STATE_CANCELED)
    last = [event async for event in subscription][-1]
    equal(last.status_update.status.state, TaskState.TASK_STATE_CANCELED)


@test
async def extension_header(switchboard):
    client = await switchboard.client("probe")
    card = await A2ACardResolver(await switchboard.http(), f"{switchboard.address}/a2a/probe").get_agent_card()
    offered = card.capabilities.extensions[0].uri
    wanted = with_a2a_extensions([offered, "https://example.com/not-known"])
    context = ClientCallContext(service_parameters=ServiceParametersFactory.create([wanted]))
    await send(client, "hello", context=context)
    equal(switchboard.last_response.headers["a2a-extensions"], offered)


@test
async def send_blocking(switchboard):
    client = await switchboard.client("probe")
    task = await send(client, "sleep:300")
    equal(task.status.state, TaskState.TASK_STATE_COMPLETED)
    equal(get_message_text(task.status.message), "slept for 300 ms")
    assert task.context_id and task.status.HasField("timestamp")


@test
async def send_polling(switchboard):
    client = await switchboard.client("probe", polling=True)
    task = await send(client, "sleep:500")
    assert task.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING), task.status.state
    done = await until(
        lambda: client.get_task(GetTaskRequest(id=task.id)),
        lambda task: task.status.state == TaskState.TASK_STATE_COMPLETED,
    )
    equal(get_message_text(done.status.message), "slept for 500 ms")


@test
async def message_reply(switchboard):
    client = await switchboard.client("probe")
    reply = await send(client, "message")
    equal((reply.role, get_message_text(reply)), (Role.ROLE_AGENT, "a direct message"))


@test
async def stream(switchboard):
    client = await switchboard.client("probe", streaming=True)
    events = [event async for event in client.send_message(request("stream:200"))]
    kinds = [event.WhichOneof("payload") for event in events]
    equal((kinds[0], kinds.count("task"), kinds[-1]), ("task", 1, "status_update"))
    equal(chunks(events), numbered(200))
    updates = [event.artifact_update for event in events if event.HasField("artifact_update")]
    equal([update.append for update in updates], [False] + [True] * 199)
    equal([update.last_chunk for update in updates], [False] * 199 + [True])
    equal(events[-1].status_update.status.state, TaskState.TASK_STATE_COMPLETED)


@test
async def stream_message_reply(switchboard):
    client = await switchboard.client("probe", streaming=True)
    events = [event async for event in client.send_message(request("message"))]
    equal([get_message_text(event.message) for event in events], ["a direct message"])


@test
async def stream_input_required(switchboard):
    client = await switchboard.client("probe", streaming=True)
    events = [event async for event in client.send_message(request("ask"))]
    equal(events[-1].status_update.status.state, TaskState.TASK_STATE_INPUT_REQUIRED)
    events = [event async for event in client.send_message(request("again", task=events[0].task))]
    status = events[-1].status_update.status
    equal((status.state, get_message_text(status.message)), (TaskState.TASK_STATE_COMPLETED, "you said: again"))


@test
async def resubscribe(switchboard):
    http = await switchboard.http()
    dropped = await switchboard.client("probe", streaming=True, http=http)
    task = (await first(dropped.send_message(request("hold")))).task
    await http.aclose()

    client = await switchboard.client("probe", streaming=True)
    events = client.subscribe(SubscribeToTaskRequest(id=task.id))
    equal((await anext(events)).task.id, task.id)
    await (await switchboard.client("probe")).cancel_task(CancelTaskRequest(id=task.id))
    rest = [event async for event in events]
    equal(rest[-1].status_update.status.state, TaskState.TASK_STATE_CANCELED)


@test
async def resubscribe_chunks(switchboard):
    """The Task that opens the second stream and what follows make the whole, without a gap or a repetition."""
    client = await switchboard.client("probe", streaming=True)
    for count in COUNTS:
        http = await switchboard.http()
        dropped = await switchboard.client("probe", streaming=True, http=http)
        task = (await first(dropped.send_message(request(f"streamy:{count}")))).task
        await http.aclose()
        events = client.subscribe(SubscribeToTaskRequest(id=task.id))
        try:
            snapshot = (await anext(events)).task
        except UnsupportedOperationError:
            continue
        seen = "".join(get_artifact_text(artifact, delimiter="") for artifact in snapshot.artifacts)
        return equal(seen + chunks([event async for event in events]), numbered(count))
    raise AssertionError("every stream ended before the second connection was there")


@test
async def get(switchboard):
    client = await switchboard.client("probe")
    hello = request("hello")
    hello.message.metadata.update({"shelf": "b4"})
    sent = (await first(client.send_message(hello))).task
    task = await client.get_task(GetTaskRequest(id=sent.id))
    equal((task.id, task.context_id, task.status.state), (sent.id, sent.context_id, TaskState.TASK_STATE_COMPLETED))
    equal([(artifact.name, get_artifact_text(artifact)) for artifact in task.artifacts], [("greeting", "hello")])
    equal((get_message_text(task.history[0]), dict(task.history[0].metadata)), ("hello", {"shelf": "b4"}))


@test
async def get_history_length(switchboard):
    client = await switchboard.client("guide")
    task = await send(client, "hi")
    task = await send(client, "Ada", task=task)
    task = await send(client, "tasks", task=task)
    whole = await client.get_task(GetTaskRequest(id=task.id))
    assert len(whole.history) >= 3, whole.history
    last = await client.get_task(GetTaskRequest(id=task.id, history_length=1))
    equal(list(last.history), list(whole.history)[-1:])
    none = await client.get_task(GetTaskRequest(id=task.id, history_length=0))
    equal(list(none.history), [])


@test
async def send_history_length(switchboard):
    client = await switchboard.client("probe")
    task = await send(client, "ask")
    task = await send(client, "again", task=task, history_length=1)
    equal(len(task.history), 1)


@test
async def list_tasks(switchboard):
    client = await switchboard.client("probe")
    first_task = await send(client, "hello")
    context_id = first_task.context_id
    sent = [first_task.id]
    for _ in range(2):
        more = request("hello")
        more.message.context_id = context_id
        sent.append((await first(client.send_message(more))).task.id)

    page = await client.list_tasks(ListTasksRequest(context_id=context_id, page_size=2, include_artifacts=True))
    equal((page.total_size, page.page_size, len(page.tasks)), (3, 2, 2))
    equal({get_artifact_text(task.artifacts[0]) for task in page.tasks}, {"hello"})
    last = await client.list_tasks(
        ListTasksRequest(context_id=context_id, page_size=2, page_token=page.next_page_token)
    )
    equal((last.next_page_token, [len(task.artifacts) for task in last.tasks]), ("", [0]))
    equal([task.id for task in [*page.tasks, *last.tasks]], sent[::-1])


@test
async def list_tasks_filter(switchboard):
    client = await switchboard.client("probe")
    task = await send(client, "ask")
    waiting = ListTasksRequest(context_id=task.context_id, status=TaskState.TASK_STATE_INPUT_REQUIRED)
    equal([found.id for found in (await client.list_tasks(waiting)).tasks], [task.id])
    since = ListTasksRequest(context_id=task.context_id, status_timestamp_after=task.status.timestamp)
    equal([found.id for found in (await client.list_tasks(since)).tasks], [task.id])
    done = ListTasksRequest(context_id=task.context_id, status=TaskState.TASK_STATE_COMPLETED)
    answer = await client.list_tasks(done)
    equal((list(answer.tasks), answer.total_size, answer.next_page_token), ([], 0, ""))


@test
async def cancel(switchboard):
    client = await switchboard.client("probe", polling=True)
    task = await send(client, "hold")
    canceled = await client.cancel_task(CancelTaskRequest(id=task.id))
    equal((canceled.id, canceled.status.state), (task.id, TaskState.TASK_STATE_CANCELED))
    equal((await client.get_task(GetTaskRequest(id=task.id))).status.state, TaskState.TASK_STATE_CANCELED)


@test
async def cancel_parked(switchboard):
    client = await switchboard.client("probe")
    task = await send(client, "ask")
    equal((await client.cancel_task(CancelTaskRequest(id=task.id))).status.state, TaskState.TASK_STATE_CANCELED)


@test
async def multi_turn(switchboard):
    client = await switchboard.client("guide")
    asked = await send(client, "hi")
    equal(asked.status.state, TaskState.TASK_STATE_INPUT_REQUIRED)
    equal(get_message_text(asked.status.message), "Hello! What is your name?")
    asked = await send(client, "Ada", task=asked)
    equal(asked.status.state, TaskState.TASK_STATE_INPUT_REQUIRED)
    assert "Nice to meet you, Ada" in get_message_text(asked.status.message)
    told = await send(client, "streams", task=asked)
    equal((told.id, told.status.state), (asked.id, TaskState.TASK_STATE_COMPLETED))
    assert "Last-Event-ID" in get_message_text(told.status.message)


@test
async def auth_required(switchboard):
    client = await switchboard.client("probe")
    asked = await send(client, "auth")
    equal(asked.status.state, TaskState.TASK_STATE_AUTH_REQUIRED)
    done = await send(client, "signed in", task=asked)
    equal(done.status.state, TaskState.TASK_STATE_COMPLETED)
    equal(get_message_text(done.status.message), "you said: signed in")


@test
async def endings(switchboard):
    client = await switchboard.client("probe")
    for command, state in {
        "reject": TaskState.TASK_STATE_REJECTED,
        "err": TaskState.TASK_STATE_FAILED,
        "panic": TaskState.TASK_STATE_FAILED,
        "silent": TaskState.TASK_STATE_FAILED,
    }.items():
        equal((command, (await send(client, command)).status.state), (command, state))


@test
async def parts_received(switchboard):
    client = await switchboard.client("probe")
    (part,) = (await send(client, "file")).artifacts[0].parts
    equal((part.raw, part.filename, part.media_type), (b"a file from the probe\n", "probe.txt", "text/plain"))
    (data,) = get_data_parts((await send(client, "data")).artifacts[0].parts)
    equal((data["probe"], data["numbers"]), (True, [1, 2, 3]))


@test
async def parts_echoed(switchboard):
    client = await switchboard.client("echo")
    data = {"integer": 7, "fraction": 0.5, "nested": {"list": [True, None, "x"]}}
    sent = [
        new_text_part("grüße 🦀", media_type="text/markdown"),
        new_raw_part(bytes(range(256)), media_type="application/octet-stream", filename="all.bin"),
        new_url_part("https://example.com/a.png", media_type="image/png", filename="a.png"),
        new_data_part(data),
        new_data_part([1, "two", None]),
    ]
    parts = (await send(client, *sent)).artifacts[0].parts
    equal(list(parts), sent)
    equal(get_raw_parts(parts), [bytes(range(256))])
    equal(get_url_parts(parts), ["https://example.com/a.png"])
    equal(get_data_parts(parts), [data, [1, "two", None]])


@test
async def large_artifact(switchboard):
    client = await switchboard.client("probe", streaming=True)
    events = [event async for event in client.send_message(request("big:1000000"))]
    equal(len(chunks(events)), 1_000_000)


@test
async def error_task_not_found(switchboard):
    client = await switchboard.client("probe", streaming=True)
    unknown = str(uuid.uuid4())
    await fails_with(TaskNotFoundError, client.get_task(GetTaskRequest(id=unknown)))
    await fails_with(TaskNotFoundError, client.cancel_task(CancelTaskRequest(id=unknown)))
    await fails_with(TaskNotFoundError, first(client.subscribe(SubscribeToTaskRequest(id=unknown))))
    stray = request("hello")
    stray.message.task_id = unknown
    await fails_with(TaskNotFoundError, first(client.send_message(stray)))


@test
async def error_not_cancelable(switchboard):
    client = await switchboard.client("probe")
    task = await send(client, "hello")
    await fails_with(TaskNotCancelableError, client.cancel_task(CancelTaskRequest(id=task.id)))


@test
async def error_send_to_finished(switchboard):
    client = await switchboard.client("probe")
    task = await send(client, "hello")
    await fails_with(UnsupportedOperationError, send(client, "hello", task=task))


@test
async def error_stream_to_finished(switchboard):
    client = await switchboard.client("probe", streaming=True)
    task = await send(await switchboard.client("probe"), "hello")
    await fails_with(UnsupportedOperationError, first(client.send_message(request("hello", task=task))))


@test
async def error_resubscribe(switchboard):
    client = await switchboard.client("probe", streaming=True)
    task = await send(await switchboard.client("probe"), "hello")
    await fails_with(UnsupportedOperationError, first(client.subscribe(SubscribeToTaskRequest(id=task.id))))


@test
async def error_invalid_params(switchboard):
    client = await switchboard.client("probe")
    await fails_with(InvalidParamsError, client.list_tasks(ListTasksRequest(page_size=1000)))
    await fails_with(InvalidParamsError, client.list_tasks(ListTasksRequest(page_token="not a token")))
    task = await send(client, "ask")
    stray = request("again", task=task)
    stray.message.context_id = str(uuid.uuid4())
    await fails_with(InvalidParamsError, first(client.send_message(stray)))


@test
async def error_no_extended_card(switchboard):
    """An open server says so on its card, and says it again to a client with a card from other times."""
    resolver = A2ACardResolver(await switchboard.http(), f"{switchboard.address}/a2a/echo")
    card = await resolver.get_agent_card()
    equal(card.capabilities.extended_agent_card, False)
    card.capabilities.extended_agent_card = True
    client = (await switchboard.factory()).create(card)
    await fails_with(UnsupportedOperationError, client.get_extended_agent_card(GetExtendedAgentCardRequest()))


if __name__ == "__main__":
    main(connect)
