"""Webhooks with Python a2a-sdk 0.3.26: set with its client or with a message, and received as its Task. For listing and
deleting them it has no calls, but types for JSON-RPC.
"""

import json
import uuid

from a2a.types import (
    DeleteTaskPushNotificationConfigParams,
    DeleteTaskPushNotificationConfigRequest,
    DeleteTaskPushNotificationConfigResponse,
    DeleteTaskPushNotificationConfigSuccessResponse,
    GetTaskPushNotificationConfigParams,
    ListTaskPushNotificationConfigParams,
    ListTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigResponse,
    ListTaskPushNotificationConfigSuccessResponse,
    PushNotificationAuthenticationInfo,
    PushNotificationConfig,
    Task,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskState,
)
from receiver import CREDENTIALS, TOKEN, Receiver
from runner import KEY, equal, numbered, test
from switchboard import INVALID_PARAMS, PUSH_NOT_SUPPORTED, TASK_NOT_FOUND, message, send, text

ENDED = (TaskState.completed, TaskState.canceled, TaskState.failed, TaskState.rejected)


def parse(body):
    equal(json.loads(body)["kind"], "task")
    return Task.model_validate_json(body)


def ends(task):
    return task.status.state in ENDED


def states(tasks):
    return [task.status.state.value for task in tasks]


async def receive(switchboard, **settings):
    return await switchboard.stack.enter_async_context(Receiver(switchboard.address, "0.3", parse, **settings))


def hook(receiver, id="hook"):
    authentication = PushNotificationAuthenticationInfo(schemes=["Bearer"], credentials=CREDENTIALS)
    return PushNotificationConfig(id=id, url=receiver.url, token=TOKEN, authentication=authentication)


def shows(answer, task, receiver, id="hook"):
    """The answer is what was set, without its secrets. Over HTTP+JSON this client says "" for what is not there."""
    config = answer.push_notification_config
    equal((answer.task_id, config.id, config.url), (task.id, id, receiver.url))
    equal(config.authentication.schemes, ["Bearer"])
    equal((config.token or None, config.authentication.credentials or None), (None, None))


async def set_hook(client, task, receiver, id="hook"):
    config = TaskPushNotificationConfig(task_id=task.id, push_notification_config=hook(receiver, id))
    return await client.set_task_callback(config)


async def get_hook(client, task, id="hook"):
    asked = GetTaskPushNotificationConfigParams(id=task.id, push_notification_config_id=id)
    return await client.get_task_callback(asked)


async def post(switchboard, client, request, response):
    http = await switchboard.http()
    answer = await http.post((await client.get_card()).url, json=request.model_dump(mode="json", exclude_none=True))
    return response.model_validate(answer.json()).root


async def list_hooks(switchboard, client, task):
    params = ListTaskPushNotificationConfigParams(id=task.id)
    request = ListTaskPushNotificationConfigRequest(id=str(uuid.uuid4()), params=params)
    answer = await post(switchboard, client, request, ListTaskPushNotificationConfigResponse)
    assert isinstance(answer, ListTaskPushNotificationConfigSuccessResponse), answer
    return answer.result


async def delete_hook(switchboard, client, task, id):
    params = DeleteTaskPushNotificationConfigParams(id=task.id, push_notification_config_id=id)
    request = DeleteTaskPushNotificationConfigRequest(id=str(uuid.uuid4()), params=params)
    answer = await post(switchboard, client, request, DeleteTaskPushNotificationConfigResponse)
    assert isinstance(answer, DeleteTaskPushNotificationConfigSuccessResponse), answer


@test
async def push_set_get(switchboard):
    client = await switchboard.client("probe", polling=True)
    task = await send(client, "hold")
    receiver, other, later = [await receive(switchboard) for _ in range(3)]
    shows(await set_hook(client, task, receiver), task, receiver)
    shows(await set_hook(client, task, other, "other"), task, other, "other")
    shows(await get_hook(client, task), task, receiver)
    shows(await get_hook(client, task, "other"), task, other, "other")
    # The same id sets the same webhook anew.
    shows(await set_hook(client, task, later), task, later)
    shows(await get_hook(client, task), task, later)
    await client.cancel_task(TaskIdParams(id=task.id))
    for told in (other, later):
        equal(states(await told.told(task.id, ends)), ["canceled"])
    receiver.is_quiet()


@test(only="jsonrpc")
async def push_get_by_task(switchboard):
    """In version 0.3 a webhook needs no id to be set or asked for. Over HTTP+JSON this client wants one."""
    client = await switchboard.client("probe", polling=True)
    task = await send(client, "hold")
    receiver = await receive(switchboard)
    shows(await set_hook(client, task, receiver, id=None), task, receiver, id=task.id)
    shows(await get_hook(client, task, id=None), task, receiver, id=task.id)
    await client.cancel_task(TaskIdParams(id=task.id))
    equal(states(await receiver.told(task.id, ends)), ["canceled"])


@test(only="jsonrpc")
async def push_list(switchboard):
    client = await switchboard.client("probe", polling=True)
    task = await send(client, "hold")
    equal(await list_hooks(switchboard, client, task), [])
    receivers = {"a": await receive(switchboard), "b": await receive(switchboard)}
    for id, receiver in receivers.items():
        await set_hook(client, task, receiver, id)
    for answer, (id, receiver) in zip(await list_hooks(switchboard, client, task), receivers.items(), strict=True):
        shows(answer, task, receiver, id)
    await client.cancel_task(TaskIdParams(id=task.id))
    for receiver in receivers.values():
        equal(states(await receiver.told(task.id, ends)), ["canceled"])


@test(only="jsonrpc")
async def push_delete(switchboard):
    client = await switchboard.client("probe", polling=True)
    task = await send(client, "hold")
    deleted, kept = await receive(switchboard), await receive(switchboard)
    await set_hook(client, task, deleted, "deleted")
    await set_hook(client, task, kept, "kept")
    await delete_hook(switchboard, client, task, "deleted")
    await switchboard.refuses(TASK_NOT_FOUND, get_hook(client, task, "deleted"))
    (answer,) = await list_hooks(switchboard, client, task)
    shows(answer, task, kept, "kept")
    await client.cancel_task(TaskIdParams(id=task.id))
    equal(states(await kept.told(task.id, ends)), ["canceled"])
    deleted.is_quiet()
    for _ in range(2):
        await delete_hook(switchboard, client, task, "kept")
        equal(await list_hooks(switchboard, client, task), [])


@test
async def push_send_blocking(switchboard):
    receiver = await receive(switchboard)
    client = await switchboard.client("probe", hook=hook(receiver))
    task = await send(client, "hello")
    equal(task.status.state, TaskState.completed)
    told = await receiver.told(task.id, ends)
    equal(states(told), ["working", "completed"])
    equal({(told.id, told.context_id) for told in told}, {(task.id, task.context_id)})
    equal([(artifact.name, text(artifact.parts)) for artifact in told[-1].artifacts], [("greeting", "hello")])
    equal(text(told[-1].history[0].parts), "hello")
    shows(await get_hook(client, task), task, receiver)


@test
async def push_send_polling(switchboard):
    receiver = await receive(switchboard)
    client = await switchboard.client("probe", polling=True, hook=hook(receiver))
    task = await send(client, "sleep:200")
    told = await receiver.told(task.id, ends)
    equal(states(told), ["working", "completed"])
    equal(text(told[-1].status.message.parts), "slept for 200 ms")


@test
async def push_stream(switchboard):
    receiver = await receive(switchboard)
    client = await switchboard.client("probe", streaming=True, hook=hook(receiver))
    events = [event async for event in client.send_message(message("stream:200"))]
    told = await receiver.told(events[0][0].id, ends)
    equal(states(told), ["working", "completed"])
    equal(text(told[-1].artifacts[0].parts), numbered(200))


@test
async def push_input_required(switchboard):
    receiver = await receive(switchboard)
    client = await switchboard.client("probe", hook=hook(receiver))
    task = await send(client, "ask")
    equal(task.status.state, TaskState.input_required)
    await send(await switchboard.client("probe"), "again", task=task)
    told = await receiver.told(task.id, ends)
    assert states(told)[-1] == "completed" and states(told).count("input-required") == 1, states(told)
    equal(text(told[-1].status.message.parts), "you said: again")


@test
async def push_retry(switchboard):
    """What was not taken comes again, the same, before anything else does."""
    receiver = await receive(switchboard, refuse=1)
    client = await switchboard.client("probe", hook=hook(receiver))
    task = await send(client, "hello")
    equal(states(await receiver.told(task.id, ends)), ["working", "completed"])
    refused, again, _ = receiver.deliveries
    equal((refused.taken, again.taken), (False, True))
    equal((again.id, again.body), (refused.id, refused.body))


@test
async def push_after_end(switchboard):
    client = await switchboard.client("probe")
    task = await send(client, "hello")
    receiver = await receive(switchboard)
    await set_hook(client, task, receiver)
    (told,) = await receiver.told(task.id, ends)
    equal((told.id, told.status.state, text(told.artifacts[0].parts)), (task.id, TaskState.completed, "hello"))


@test
async def push_cancel(switchboard):
    receiver = await receive(switchboard)
    client = await switchboard.client("probe", polling=True, hook=hook(receiver))
    task = await send(client, "hold")
    while (await receiver.next()).event.status.state != TaskState.working:
        pass
    await client.cancel_task(TaskIdParams(id=task.id))
    equal(states(await receiver.told(task.id, ends)), ["working", "canceled"])


@test
async def error_push_refused(switchboard):
    """A private address, alone and with a message, which is then refused; a webhook and a task that are not there."""
    client = await switchboard.client("probe")
    task = await send(client, "ask")
    receiver = await receive(switchboard)
    private = hook(receiver)
    private.url = "http://192.168.7.7/hook"
    config = TaskPushNotificationConfig(task_id=task.id, push_notification_config=private)
    await switchboard.refuses(INVALID_PARAMS, client.set_task_callback(config))
    await switchboard.refuses(INVALID_PARAMS, send(await switchboard.client("probe", hook=private), "hello"))
    await switchboard.refuses(TASK_NOT_FOUND, get_hook(client, task))
    task.id = str(uuid.uuid4())
    await switchboard.refuses(TASK_NOT_FOUND, set_hook(client, task, receiver))


@test(keyed=True)
async def error_push_not_supported(switchboard):
    """The server with a key has no webhooks."""
    http = await switchboard.http(headers={"Authorization": f"Bearer {KEY}"})
    client = await switchboard.client("probe", http=http)
    equal((await client.get_card()).capabilities.push_notifications, False)
    task = await send(client, "ask")
    config = PushNotificationConfig(id="hook", url="https://example.com/hook")
    config = TaskPushNotificationConfig(task_id=task.id, push_notification_config=config)
    await switchboard.refuses(PUSH_NOT_SUPPORTED, client.set_task_callback(config))
    await switchboard.refuses(PUSH_NOT_SUPPORTED, get_hook(client, task))
