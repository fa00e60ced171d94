"""The agent of ../behaviours.py with this SDK."""

import base64
import sys
from pathlib import Path

import httpx
from a2a.server.apps import A2AFastAPIApplication, A2ARESTFastAPIApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import BasePushNotificationSender, InMemoryPushNotificationConfigStore, InMemoryTaskStore
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

sys.path.append(str(Path(__file__).resolve().parents[1]))
from behaviours import MODES, Behaviours, only, serve  # noqa: E402


class Agent(Behaviours):
    input_required = TaskState.input_required
    ask_options = {"final": True}

    def text_part(self, text):
        return Part(root=TextPart(text=text))

    def text_message(self, text, context_id):
        return new_agent_text_message(text, context_id=context_id)

    def new_task(self, message):
        return new_task(message)

    def file_bytes(self, part):
        return base64.b64decode(part.root.file.bytes, validate=True)

    def file_part(self, content):
        return Part(root=FilePart(file=FileWithBytes(bytes=base64.b64encode(content).decode())))


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
        default_input_modes=MODES,
        default_output_modes=MODES,
        skills=[AgentSkill(id="behave", name="Behave", description="What is asked for", tags=["test"])],
    )
    hooks = InMemoryPushNotificationConfigStore()
    handler = DefaultRequestHandler(
        agent_executor=Agent(),
        task_store=InMemoryTaskStore(),
        push_config_store=hooks,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(), hooks),
    )
    app = A2AFastAPIApplication(card, handler).build(rpc_url="/jsonrpc")
    app.mount("/rest", A2ARESTFastAPIApplication(card, handler).build())
    for interface in card.additional_interfaces:
        fields = {"url": interface.url, "preferred_transport": interface.transport, "additional_interfaces": []}
        binding = interface.url.rsplit("/", 1)[1]
        alone = card.model_copy(update=fields).model_dump(mode="json", by_alias=True, exclude_none=True)
        app.router.routes.append(only(f"{binding}-0.3", alone))
    return app


serve(application)
