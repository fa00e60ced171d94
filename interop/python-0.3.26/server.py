"""An agent built with this SDK, for our client to call: `server.py PORT`, 0 for a free one. Prints the port first.

What it does is in the first word of a message: `echo`, `reply`, `stream COUNT`, `ask`, `fail`, `wait`, `file`, `data` or
`inspect`, which tells the bytes of a file in hexadecimal and returns them in reverse.
"""

import asyncio
import base64
import socket
import sys

import httpx
import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AFastAPIApplication, A2ARESTFastAPIApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    FilePart,
    FileWithBytes,
    Part,
    TaskState,
    TextPart,
    TransportProtocol,
)
from a2a.utils import new_agent_text_message, new_task


def text_part(text):
    return Part(root=TextPart(text=text))


class Behaviours(AgentExecutor):
    async def execute(self, context, event_queue):
        word, _, rest = context.get_user_input().partition(" ")
        if word == "reply":
            await event_queue.enqueue_event(new_agent_text_message(rest, context_id=context.context_id))
            return
        task = context.current_task
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if task.status.state == TaskState.input_required:
            await updater.add_artifact([text_part(f"hello {context.get_user_input()}")], name="greeting")
            await updater.complete()
            return
        await updater.start_work()
        match word:
            case "echo":
                await updater.add_artifact([text_part(rest)], name="echo")
                await updater.complete()
            case "stream":
                for number in range(1, int(rest) + 1):
                    await updater.add_artifact(
                        [text_part(f"chunk {number}\n")],
                        artifact_id="chunks",
                        append=number > 1,
                        last_chunk=number == int(rest),
                    )
                await updater.complete()
            case "ask":
                question = updater.new_agent_message([text_part("what is your name?")])
                await updater.requires_input(question, final=True)
            case "fail":
                await updater.failed(updater.new_agent_message([text_part("it did not work")]))
            case "wait":
                # Until the SDK cancels this.
                await asyncio.Event().wait()
            case "file" | "data":
                await updater.add_artifact(context.message.parts[1:], name="returned")
                await updater.complete()
            case "inspect":
                content = base64.b64decode(context.message.parts[1].root.file.bytes, validate=True)
                returned = FileWithBytes(bytes=base64.b64encode(content[::-1]).decode())
                await updater.add_artifact([text_part(content.hex()), Part(root=FilePart(file=returned))])
                await updater.complete()
            case _:
                await updater.reject(updater.new_agent_message([text_part(f"{word} is nothing this agent does")]))

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def application(address):
    card = AgentCard(
        name="Behaviours",
        description="Does what the first word of a message says",
        version="1.0.0",
        url=f"{address}/jsonrpc",
        preferred_transport=TransportProtocol.jsonrpc,
        additional_interfaces=[
            AgentInterface(transport=TransportProtocol.jsonrpc, url=f"{address}/jsonrpc"),
            AgentInterface(transport=TransportProtocol.http_json, url=f"{address}/rest"),
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="behave", name="Behave", description="What is asked for", tags=["test"])],
    )
    hooks = InMemoryPushNotificationConfigStore()
    handler = DefaultRequestHandler(
        agent_executor=Behaviours(),
        task_store=InMemoryTaskStore(),
        push_config_store=hooks,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(), hooks),
    )
    app = A2AFastAPIApplication(card, handler).build(rpc_url="/jsonrpc")
    app.mount("/rest", A2ARESTFastAPIApplication(card, handler).build())
    return app


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
