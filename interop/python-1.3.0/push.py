"""Webhooks with Python a2a-sdk 1.3.0: set with its client or with a message, and received as its StreamResponse; as the
Task of version 0.3 where the client speaks that.
"""

import json
import uuid

from a2a.client import A2ACardResolver, AuthInterceptor
from a2a.compat.v0_3 import conversions
from a2a.compat.v0_3 import types as types_of_03
from a2a.helpers import get_artifact_text, get_message_text
from a2a.types import (
    AuthenticationInfo,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    StreamResponse,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import InvalidParamsError, PushNotificationNotSupportedError, TaskNotFoundError
from google.protobuf.json_format import ParseDict
from receiver import CREDENTIALS, TOKEN, Receiver
from runner import equal, fails_with, numbered, test
from switchboard import Key, chunks, first, request, send

ENDED = (
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_CANCELED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_REJECTED,
)


def parse(body):
    return ParseDict(json.loads(body), StreamResponse())


def parse_03(body):
    equal(json.loads(body)["kind"], "task")
    task = conversions.to_core_task(types_of_03.Task.model_validate_json(body))
    return StreamResponse(task=task)


def status(event):
    """The status that an event tells; None if it is about something else."""
    kind = event.WhichOneof("payload")
    return getattr(event, kind).status if kind in ("task", "status_update") else None


def ends(event):
    return status(event) is not None and status(event).state in ENDED


def states(events):
    told = [status(event).state for event in events if status(event) is not None]
    return [TaskState.Name(state).removeprefix("TASK_STATE_") for state in told]


async def receive(switchboard, version="1.0", **settings):
    receiver = Receiver(switchboard.address, version, parse if version == "1.0" else parse_03, **settings)
    return await switchboard.stack.enter_async_context(receiver)


def hook(receiver, **fields):
    authentication = AuthenticationInfo(scheme="Bearer", credentials=CREDENTIALS)
    return TaskPushNotificationConfig(url=receiver.url, token=TOKEN, authentication=authentication, **fields)


def shown(receiver, **fields):
    """What is told of a webhook: what was set, without its secrets."""
    return TaskPushNotificationConfig(
        url=receiver.url, authentication=AuthenticationInfo(scheme="Bearer"), **fields
    )


async def listed(client, task, **fields):
    asked = ListTaskPushNotificationConfigsRequest(task_id=task.id, **fields)
    return await client.list_task_push_notification_configs(asked)


@test
async def push_set_get(switchboard):
    client = await switchboard.client("probe", polling=True)
    task = await send(client, "hold")
    receiver, other = await receive(switchboard), await receive(switchboard)
    named = {"task_id": task.id, "id": "hook"}
    created = await client.create_task_push_notification_config(hook(receiver, **named))
    equal(created, shown(receiver, **named))
    # Without an id it is another one, with an id of the server's making.
    created = await client.create_task_push_notification_config(hook(other, task_id=task.id))
    assert created.id
    equal(created, shown(other, task_id=task.id, id=created.id))
    for config in (shown(receiver, **named), created):
        asked = GetTaskPushNotificationConfigRequest(task_id=task.id, id=config.id)
        equal(await client.get_task_push_notification_config(asked), config)
    await client.cancel_task(CancelTaskRequest(id=task.id))
    for told in (receiver, other):
        equal(states(await told.told(task.id, ends)), ["CANCELED"])


@test
async def push_list(switchboard):
    client = await switchboard.client("probe", polling=True)
    task = await send(client, "hold")
    equal(list((await listed(client, task)).configs), [])
    receivers = [await receive(switchboard) for _ in range(3)]
    configs = []
    for receiver, id in zip(receivers, "abc", strict=True):
        await client.create_task_push_notification_config(hook(receiver, task_id=task.id, id=id))
        configs.append(shown(receiver, task_id=task.id, id=id))
    answer = await listed(client, task)
    equal((list(answer.configs), answer.next_page_token), (configs, ""))
    page = await listed(client, task, page_size=2)
    assert page.next_page_token
    last = await listed(client, task, page_size=2, page_token=page.next_page_token)
    equal((list(page.configs), list(last.configs), last.next_page_token), (configs[:2], configs[2:], ""))
    await client.cancel_task(CancelTaskRequest(id=task.id))
    for receiver in receivers:
        equal(states(await receiver.told(task.id, ends)), ["CANCELED"])


@test
async def push_delete(switchboard):
    client = await switchboard.client("probe", polling=True)
    task = await send(client, "hold")
    deleted, kept = await receive(switchboard), await receive(switchboard)
    await client.create_task_push_notification_config(hook(deleted, task_id=task.id, id="deleted"))
    await client.create_task_push_notification_config(hook(kept, task_id=task.id, id="kept"))
    delete = DeleteTaskPushNotificationConfigRequest(task_id=task.id, id="deleted")
    await client.delete_task_push_notification_config(delete)
    asked = GetTaskPushNotificationConfigRequest(task_id=task.id, id="deleted")
    await fails_with(TaskNotFoundError, client.get_task_push_notification_config(asked))
    equal(list((await listed(client, task)).configs), [shown(kept, task_id=task.id, id="kept")])
    await client.cancel_task(CancelTaskRequest(id=task.id))
    equal(states(await kept.told(task.id, ends)), ["CANCELED"])
    deleted.is_quiet()
    delete.id = "kept"
    for _ in range(2):
        await client.delete_task_push_notification_config(delete)
        equal(list((await listed(client, task)).configs), [])


@test
async def push_send_blocking(switchboard):
    client = await switchboard.client("probe")
    receiver = await receive(switchboard)
    task = await send(client, "hello", task_push_notification_config=hook(receiver, id="hook"))
    equal(task.status.state, TaskState.TASK_STATE_COMPLETED)
    told = await receiver.told(task.id, ends)
    equal(states(told), ["WORKING", "COMPLETED"])
    equal([event.WhichOneof("payload") for event in told], ["status_update", "artifact_update", "status_update"])
    updates = [getattr(event, event.WhichOneof("payload")) for event in told]
    equal({(update.context_id, update.task_id) for update in updates}, {(task.context_id, task.id)})
    artifact = updates[1].artifact
    equal((artifact.name, get_artifact_text(artifact)), ("greeting", "hello"))
    asked = GetTaskPushNotificationConfigRequest(task_id=task.id, id="hook")
    equal(await client.get_task_push_notification_config(asked), shown(receiver, task_id=task.id, id="hook"))


@test
async def push_send_polling(switchboard):
    receiver = await receive(switchboard)
    client = await switchboard.client("probe", polling=True, hook=hook(receiver))
    task = await send(client, "sleep:200")
    told = await receiver.told(task.id, ends)
    equal(states(told), ["WORKING", "COMPLETED"])
    equal(get_message_text(status(told[-1]).message), "slept for 200 ms")


@test
async def push_stream(switchboard):
    receiver = await receive(switchboard)
    client = await switchboard.client("probe", streaming=True, hook=hook(receiver))
    events = [event async for event in client.send_message(request("stream:200"))]
    told = await receiver.told(events[0].task.id, ends)
    equal(states(told), ["WORKING", "COMPLETED"])
    # Chunks that wait for one another come as one, so there may be fewer.
    equal(chunks(told), numbered(200))


@test
async def push_input_required(switchboard):
    receiver = await receive(switchboard)
    client = await switchboard.client("probe", hook=hook(receiver))
    task = await send(client, "ask")
    equal(task.status.state, TaskState.TASK_STATE_INPUT_REQUIRED)
    await send(await switchboard.client("probe"), "again", task=task)
    told = await receiver.told(task.id, ends)
    assert states(told)[-1] == "COMPLETED" and states(told).count("INPUT_REQUIRED") == 1, states(told)
    equal(get_message_text(status(told[-1]).message), "you said: again")


@test
async def push_retry(switchboard):
    """What was not taken comes again, the same, before anything else does."""
    receiver = await receive(switchboard, refuse=1)
    client = await switchboard.client("probe", hook=hook(receiver))
    task = await send(client, "hello")
    equal(states(await receiver.told(task.id, ends)), ["WORKING", "COMPLETED"])
    refused, again, *_ = receiver.deliveries
    equal((refused.taken, again.taken), (False, True))
    equal((again.id, again.body), (refused.id, refused.body))


@test
async def push_after_end(switchboard):
    """Who comes late has seen nothing of the task, and so is told all of it."""
    client = await switchboard.client("probe")
    task = await send(client, "hello")
    receiver = await receive(switchboard)
    await client.create_task_push_notification_config(hook(receiver, task_id=task.id))
    (told,) = await receiver.told(task.id, ends)
    equal((told.task.id, states([told])), (task.id, ["COMPLETED"]))
    equal(get_artifact_text(told.task.artifacts[0]), "hello")


@test
async def push_cancel(switchboard):
    receiver = await receive(switchboard)
    client = await switchboard.client("probe", polling=True, hook=hook(receiver))
    task = await send(client, "hold")
    while states([(await receiver.next()).event]) != ["WORKING"]:
        pass
    await client.cancel_task(CancelTaskRequest(id=task.id))
    equal(states(await receiver.told(task.id, ends)), ["WORKING", "CANCELED"])


@test
async def push_version_fallback(switchboard):
    """The card for version 0.3 makes this client set webhooks in 0.3, and what arrives is in 0.3 too."""
    resolver = A2ACardResolver(await switchboard.http(), f"{switchboard.address}/a2a/probe")
    card = await resolver.get_agent_card(http_kwargs={"headers": {"A2A-Version": "0.3"}})
    receiver, inline = await receive(switchboard, "0.3"), await receive(switchboard, "0.3")
    client = (await switchboard.factory(polling=True)).create(card)
    sent = request("hold", task_push_notification_config=hook(inline, id="inline"))
    task = (await first(client.send_message(sent))).task
    named = {"task_id": task.id, "id": "hook"}
    created = await client.create_task_push_notification_config(hook(receiver, **named))
    equal(created, shown(receiver, **named))
    equal(await client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(**named)), created)
    # Over HTTP+JSON this client has no call of version 0.3 for listing and deleting them.
    if switchboard.binding == "jsonrpc":
        configs = (await listed(client, task)).configs
        equal(list(configs), [shown(inline, task_id=task.id, id="inline"), created])
    await client.cancel_task(CancelTaskRequest(id=task.id))
    equal(states(await inline.told(task.id, ends)), ["WORKING", "CANCELED"])
    equal(states(await receiver.told(task.id, ends))[-1:], ["CANCELED"])
    if switchboard.binding == "jsonrpc":
        await client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(**named))
        asked = GetTaskPushNotificationConfigRequest(**named)
        await fails_with(TaskNotFoundError, client.get_task_push_notification_config(asked))


@test
async def error_push_refused(switchboard):
    """A private address, alone and with a message, which is then refused; a webhook and a task that are not there."""
    client = await switchboard.client("probe")
    task = await send(client, "ask")
    receiver = await receive(switchboard)
    private = hook(receiver, task_id=task.id, id="hook")
    private.url = "http://192.168.7.7/hook"
    await fails_with(InvalidParamsError, client.create_task_push_notification_config(private))
    private.task_id = ""
    await fails_with(InvalidParamsError, send(await switchboard.client("probe", hook=private), "hello"))
    asked = GetTaskPushNotificationConfigRequest(task_id=task.id, id="hook")
    await fails_with(TaskNotFoundError, client.get_task_push_notification_config(asked))
    unknown = hook(receiver, task_id=str(uuid.uuid4()))
    await fails_with(TaskNotFoundError, client.create_task_push_notification_config(unknown))


@test(keyed=True)
async def error_push_not_supported(switchboard):
    """The server with a key has no webhooks."""
    card = await A2ACardResolver(await switchboard.http(), f"{switchboard.address}/a2a/probe").get_agent_card()
    equal(card.capabilities.push_notifications, False)
    client = await switchboard.client("probe", interceptors=[AuthInterceptor(Key())])
    task = await send(client, "ask")
    named = {"task_id": task.id, "id": "hook"}
    for call in (
        client.create_task_push_notification_config(
            TaskPushNotificationConfig(**named, url="https://example.com/hook")
        ),
        client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(**named)),
        client.list_task_push_notification_configs(ListTaskPushNotificationConfigsRequest(task_id=task.id)),
        client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(**named)),
    ):
        await fails_with(PushNotificationNotSupportedError, call)
