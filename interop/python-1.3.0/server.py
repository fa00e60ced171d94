"""The agent of ../behaviours.py with this SDK."""

import sys
from pathlib import Path

import httpx
from a2a.helpers import new_raw_part, new_task_from_user_message, new_text_message, new_text_part
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import BasePushNotificationSender, InMemoryPushNotificationConfigStore, InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, TaskState
from a2a.utils.constants import TransportProtocol
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette

sys.path.append(str(Path(__file__).resolve().parents[1]))
from behaviours import MODES, Behaviours, only, serve  # noqa: E402


class Agent(Behaviours):
    input_required = TaskState.TASK_STATE_INPUT_REQUIRED

    def text_part(self, text):
        return new_text_part(text)

    def text_message(self, text, context_id):
        return new_text_message(text, context_id=context_id)

    def new_task(self, message):
        return new_task_from_user_message(message)

    def file_bytes(self, part):
        return part.raw

    def file_part(self, content):
        return new_raw_part(content)


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
        default_input_modes=MODES,
        default_output_modes=MODES,
        skills=[AgentSkill(id="behave", name="Behave", description="What is asked for", tags=["test"])],
    )
    hooks = InMemoryPushNotificationConfigStore()
    handler = DefaultRequestHandler(
        agent_executor=Agent(),
        task_store=InMemoryTaskStore(),
        agent_card=card,
        push_config_store=hooks,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(), hooks),
    )
    # The SDK's own routes come last: one of them takes whatever comes first in a path for a tenant.
    routes = []
    for interface in interfaces:
        alone = MessageToDict(card) | {"supportedInterfaces": [MessageToDict(interface)]}
        binding = interface.url.rsplit("/", 1)[1]
        routes.append(only(f"{binding}-{interface.protocol_version}", alone))
    routes += create_agent_card_routes(card)
    routes += create_jsonrpc_routes(handler, "/jsonrpc", enable_v0_3_compat=True)
    routes += create_rest_routes(handler, path_prefix="/rest", enable_v0_3_compat=True)
    return Starlette(routes=routes)


serve(application)
