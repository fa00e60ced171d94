"""An agent built with this SDK, for our client to call: `server.py PORT`, 0 for a free one. Prints the port first.

What it does is in the first word of a message: `echo`, `reply`, `stream COUNT`, `ask`, `fail`, `wait`, `file`, `data` or
`inspect`, which tells the bytes of a file in hexadecimal and returns them in reverse.
"""

import asyncio
import socket
import sys

import httpx
import uvicorn
from a2a.helpers import new_raw_part, new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, TaskState
from a2a.utils.constants import TransportProtocol
from starlette.applications import Starlette


class Behaviours(AgentExecutor):
    async def execute(self, context, event_queue):
        word, _, rest = context.get_user_input().partition(" ")
        if word == "reply":
            await event_queue.enqueue_event(new_text_message(rest, context_id=context.context_id))
            return
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED:
            await updater.add_artifact([new_text_part(f"hello {context.get_user_input()}")], name="greeting")
            await updater.complete()
            return
        await updater.start_work()
        match word:
            case "echo":
                await updater.add_artifact([new_text_part(rest)], name="echo")
                await updater.complete()
            case "stream":
                for number in range(1, int(rest) + 1):
                    await updater.add_artifact(
                        [new_text_part(f"chunk {number}\n")],
                        artifact_id="chunks",
                        append=number > 1,
                        last_chunk=number == int(rest),
                    )
                await updater.complete()
            case "ask":
                await updater.requires_input(updater.new_agent_message([new_text_part("what is your name?")]))
            case "fail":
                await updater.failed(updater.new_agent_message([new_text_part("it did not work")]))
            case "wait":
                # Until the SDK cancels this.
                await asyncio.Event().wait()
            case "file" | "data":
                await updater.add_artifact(context.message.parts[1:], name="returned")
                await updater.complete()
            case "inspect":
                content = context.message.parts[1].raw
                await updater.add_artifact([new_text_part(content.hex()), new_raw_part(content[::-1])])
                await updater.complete()
            case _:
                await updater.reject(updater.new_agent_message([new_text_part(f"{word} is nothing this agent does")]))

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def application(address):
    interfaces = [
        AgentInterface(url=f"{address}/{path}", protocol_binding=binding.value, protocol_version=version)
        for version in ("1.0", "0.3")
        for path, binding in (("jsonrpc", TransportProtocol.JSONRPC), ("rest", TransportProtocol.HTTP_JSON))
    ]
    card = AgentCard(
        name="Behaviours",
        description="Does what the first word of a message says",
        version="1.0.0",
        supported_interfaces=interfaces,
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="behave", name="Behave", description="What is asked for", tags=["test"])],
    )
    hooks = InMemoryPushNotificationConfigStore()
    handler = DefaultRequestHandler(
        agent_executor=Behaviours(),
        task_store=InMemoryTaskStore(),
        agent_card=card,
        push_config_store=hooks,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(), hooks),
    )
    routes = [
        *create_agent_card_routes(card),
        *create_jsonrpc_routes(handler, "/jsonrpc", enable_v0_3_compat=True),
        *create_rest_routes(handler, path_prefix="/rest", enable_v0_3_compat=True),
    ]
    return Starlette(routes=routes)


def main():
    # Only where the protocol is named do answers leave without waiting for more.
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", int(sys.argv[1])))
        listener.listen()
        port = listener.getsockname()[1]
        print(port, flush=True)
        config = uvicorn.Config(application(f"http://127.0.0.1:{port}"), log_level="warning")
        uvicorn.Server(config).run(sockets=[listener])


main()
