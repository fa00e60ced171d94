"""Agents of all SDKs behind the hub, called with this SDK's client in both of its versions: ../behaviours.py says what they
do. Whatever version and binding an agent speaks, the caller's own hold.
"""

import sys
import uuid
from pathlib import Path

from a2a.helpers import (
    get_artifact_text,
    get_data_parts,
    get_message_text,
    get_raw_parts,
    get_url_parts,
    new_data_part,
    new_raw_part,
    new_url_part,
)
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTasksRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.errors import A2AError, TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError

sys.path.append(str(Path(__file__).resolve().parents[1]))
from push import ends, hook, listed, receive, shown, states  # noqa: E402
from runner import CONTENTS, equal, fails_with, hub_test, main, numbered, until  # noqa: E402
from switchboard import chunks, connect, first, request, send  # noqa: E402

# In version 0.3 there is no call for listing tasks, and this client has none for webhooks over HTTP+JSON.
IN_03 = ("jsonrpc-0.3", "rest-0.3")
REST_03 = ("rest-0.3",)


async def begun(client):
    """A task that waits at its agent until it is canceled."""
    task = await send(client, "wait")
    return await until(
        lambda: client.get_task(GetTaskRequest(id=task.id)),
        lambda task: task.status.state == TaskState.TASK_STATE_WORKING,
    )


async def ended_by_cancel(client, task, *receivers):
    """Ends a task, which its webhooks are told."""
    await client.cancel_task(CancelTaskRequest(id=task.id))
    for receiver in receivers:
        equal(states(await receiver.told(task.id, ends))[-1], "CANCELED")


@hub_test
async def card(switchboard, agent):
    card = await switchboard.card(agent)
    equal([skill.id for skill in card.skills], ["behave"])
    equal((card.capabilities.streaming, card.capabilities.push_notifications), (True, True))
    assert switchboard.version in [interface.protocol_version[:3] for interface in card.supported_interfaces], card
    for interface in card.supported_interfaces:
        assert interface.url.startswith(f"{switchboard.address}/a2a/{agent}"), interface.url


@hub_test
async def send_blocking(switchboard, agent):
    task = await send(await switchboard.client(agent), "echo hello")
    equal(switchboard.last_request.headers["a2a-version"][:3], switchboard.version)
    equal(task.status.state, TaskState.TASK_STATE_COMPLETED)
    equal([get_artifact_text(artifact) for artifact in task.artifacts], ["hello"])


@hub_test
async def send_polling(switchboard, agent):
    client = await switchboard.client(agent, polling=True)
    task = await send(client, "stream 50")
    done = await until(
        lambda: client.get_task(GetTaskRequest(id=task.id)),
        lambda task: task.status.state == TaskState.TASK_STATE_COMPLETED,
    )
    equal([get_artifact_text(artifact, delimiter="") for artifact in done.artifacts], [numbered(50)])


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
async def stream_input_required(switchboard, agent):
    client = await switchboard.client(agent, streaming=True)
    events = [event async for event in client.send_message(request("ask"))]
    equal(events[-1].status_update.status.state, TaskState.TASK_STATE_INPUT_REQUIRED)
    events = [event async for event in client.send_message(request("Ada", task=events[0].task))]
    equal((chunks(events), events[-1].status_update.status.state), ("hello Ada", TaskState.TASK_STATE_COMPLETED))


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
async def get(switchboard, agent):
    client = await switchboard.client(agent)
    sent = await send(client, "echo hello")
    task = await client.get_task(GetTaskRequest(id=sent.id))
    equal((task.id, task.context_id, task.status.state), (sent.id, sent.context_id, TaskState.TASK_STATE_COMPLETED))
    equal(get_message_text(task.history[0]), "echo hello")
    equal([get_artifact_text(artifact) for artifact in task.artifacts], ["hello"])


@hub_test
async def history_length(switchboard, agent):
    client = await switchboard.client(agent)
    told = await send(client, "Ada", task=await send(client, "ask"), history_length=1)
    equal((told.status.state, len(told.history)), (TaskState.TASK_STATE_COMPLETED, 1))
    whole = await client.get_task(GetTaskRequest(id=told.id))
    assert len(whole.history) > 1, whole.history
    last = await client.get_task(GetTaskRequest(id=told.id, history_length=1))
    equal(list(last.history), list(whole.history)[-1:])


@hub_test(lacks=IN_03)
async def list_tasks(switchboard, agent):
    client = await switchboard.client(agent)
    sent = [await send(client, "echo hello")]
    more = request("echo again")
    more.message.context_id = sent[0].context_id
    sent.append((await first(client.send_message(more))).task)
    page = await client.list_tasks(ListTasksRequest(context_id=sent[0].context_id, page_size=1))
    equal(([task.id for task in page.tasks], page.total_size), ([sent[1].id], 2))
    last = await client.list_tasks(
        ListTasksRequest(context_id=sent[0].context_id, page_size=1, page_token=page.next_page_token)
    )
    equal([task.id for task in last.tasks], [sent[0].id])


@hub_test
async def cancel(switchboard, agent):
    client = await switchboard.client(agent, polling=True)
    task = await begun(client)
    canceled = await client.cancel_task(CancelTaskRequest(id=task.id))
    equal((canceled.id, canceled.status.state), (task.id, TaskState.TASK_STATE_CANCELED))


@hub_test
async def cancel_parked(switchboard, agent):
    client = await switchboard.client(agent)
    task = await send(client, "ask")
    equal((await client.cancel_task(CancelTaskRequest(id=task.id))).status.state, TaskState.TASK_STATE_CANCELED)


@hub_test
async def endings(switchboard, agent):
    client = await switchboard.client(agent)
    failed = await send(client, "fail")
    equal((failed.status.state, get_message_text(failed.status.message)), (TaskState.TASK_STATE_FAILED, "it did not work"))
    rejected = await send(client, "juggle")
    equal(rejected.status.state, TaskState.TASK_STATE_REJECTED)
    equal(get_message_text(rejected.status.message), "juggle is nothing this agent does")


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
async def parts_echoed(switchboard, agent):
    client = await switchboard.client(agent)
    data = {"integer": 7, "nested": {"list": [True, None, "x"]}}
    url = "https://example.com/a.png"
    task = await send(client, "file", new_url_part(url, media_type="image/png"), new_data_part(data))
    equal(task.status.state, TaskState.TASK_STATE_COMPLETED)
    parts = task.artifacts[0].parts
    equal((get_url_parts(parts), get_data_parts(parts)), ([url], [data]))


@hub_test
async def push_inline(switchboard, agent):
    client = await switchboard.client(agent)
    receiver = await receive(switchboard, switchboard.version)
    task = await send(client, "echo hello", task_push_notification_config=hook(receiver, id="hook"))
    equal(states(await receiver.told(task.id, ends))[-1], "COMPLETED")


@hub_test
async def push_set_get(switchboard, agent):
    client = await switchboard.client(agent, polling=True)
    task = await begun(client)
    receiver = await receive(switchboard, switchboard.version)
    named = {"task_id": task.id, "id": "hook"}
    equal(await client.create_task_push_notification_config(hook(receiver, **named)), shown(receiver, **named))
    asked = GetTaskPushNotificationConfigRequest(**named)
    equal(await client.get_task_push_notification_config(asked), shown(receiver, **named))
    await ended_by_cancel(client, task, receiver)


@hub_test(lacks=REST_03)
async def push_list_delete(switchboard, agent):
    client = await switchboard.client(agent, polling=True)
    task = await begun(client)
    receivers = {id: await receive(switchboard, switchboard.version) for id in ("deleted", "kept")}
    for id, receiver in receivers.items():
        await client.create_task_push_notification_config(hook(receiver, task_id=task.id, id=id))
    configs = {id: shown(receiver, task_id=task.id, id=id) for id, receiver in receivers.items()}
    equal(list((await listed(client, task)).configs), [configs["deleted"], configs["kept"]])
    await client.delete_task_push_notification_config(
        DeleteTaskPushNotificationConfigRequest(task_id=task.id, id="deleted")
    )
    equal(list((await listed(client, task)).configs), [configs["kept"]])
    await ended_by_cancel(client, task, receivers["kept"])
    receivers["deleted"].is_quiet()


def kind(switchboard, error):
    """Over HTTP+JSON 0.3 this client reads no more of an error than the status, so its kind is not looked at there."""
    return A2AError if (switchboard.binding, switchboard.version) == ("rest", "0.3") else error


@hub_test
async def error_task_not_found(switchboard, agent):
    client = await switchboard.client(agent)
    unknown, not_found = str(uuid.uuid4()), kind(switchboard, TaskNotFoundError)
    await fails_with(not_found, client.get_task(GetTaskRequest(id=unknown)))
    await fails_with(not_found, client.cancel_task(CancelTaskRequest(id=unknown)))
    stray = request("echo hello")
    stray.message.task_id = unknown
    await fails_with(not_found, first(client.send_message(stray)))


@hub_test
async def error_resubscribe(switchboard, agent):
    client = await switchboard.client(agent, streaming=True)
    task = await send(await switchboard.client(agent), "echo hello")
    unsupported, not_found = kind(switchboard, UnsupportedOperationError), kind(switchboard, TaskNotFoundError)
    await fails_with(unsupported, first(client.subscribe(SubscribeToTaskRequest(id=task.id))))
    await fails_with(not_found, first(client.subscribe(SubscribeToTaskRequest(id=str(uuid.uuid4())))))


@hub_test
async def errors(switchboard, agent):
    client = await switchboard.client(agent)
    task = await send(client, "echo hello")
    not_cancelable, unsupported = TaskNotCancelableError, UnsupportedOperationError
    await fails_with(kind(switchboard, not_cancelable), client.cancel_task(CancelTaskRequest(id=task.id)))
    await fails_with(kind(switchboard, unsupported), send(client, "echo again", task=task))
    equal((await client.get_task(GetTaskRequest(id=task.id))).status.state, TaskState.TASK_STATE_COMPLETED)


if __name__ == "__main__":
    main(connect, versions=("1.0", "0.3"))
