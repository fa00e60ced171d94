"""An agent built with Python's a2a-sdk: reads a text and says which of its sentences are too long, one after the other.
`reviewer.py PORT`, 0 for a free one; prints the port first.
"""

import re
import socket
import sys

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from a2a.utils.constants import TransportProtocol
from starlette.applications import Starlette

# What most readers hold in mind at once.
MOST_WORDS = 20


class Reviewer(AgentExecutor):
    async def execute(self, context, event_queue):
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        findings = 0
        for number, sentence in enumerate(re.split(r"(?<=[.!?])\s+", context.get_user_input().strip()), start=1):
            words = len(sentence.split())
            if words > MOST_WORDS:
                findings += 1
                finding = f"sentence {number} has {words} words, {words - MOST_WORDS} too many\n"
                await updater.add_artifact([new_text_part(finding)], artifact_id="findings", append=findings > 1)
        said = f"{findings} sentences are too long" if findings else "every sentence is short enough"
        await updater.complete(updater.new_agent_message([new_text_part(said)]))

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def application(address):
    interfaces = [
        AgentInterface(url=f"{address}/{path}", protocol_binding=binding.value, protocol_version="1.0")
        for path, binding in (("jsonrpc", TransportProtocol.JSONRPC), ("rest", TransportProtocol.HTTP_JSON))
    ]
    skill = AgentSkill(
        id="text_review", name="Text review", description="Finds sentences that are too long", tags=["text"]
    )
    card = AgentCard(
        name="Reviewer",
        description="Says which sentences of a text are too long",
        version="1.0.0",
        supported_interfaces=interfaces,
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[skill],
    )
    handler = DefaultRequestHandler(agent_executor=Reviewer(), task_store=InMemoryTaskStore(), agent_card=card)
    return Starlette(
        routes=[
            *create_agent_card_routes(card),
            *create_jsonrpc_routes(handler, "/jsonrpc"),
            *create_rest_routes(handler, path_prefix="/rest"),
        ]
    )


with socket.socket(proto=socket.IPPROTO_TCP) as listener:
    listener.bind(("127.0.0.1", int(sys.argv[1])))
    listener.listen()
    port = listener.getsockname()[1]
    print(port, flush=True)
    config = uvicorn.Config(application(f"http://127.0.0.1:{port}"), log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])
