"""A server as the tests of this SDK see it: how they reach it, what they say to it, how they read its answers."""

import contextlib

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory, CredentialService
from a2a.helpers import get_text_parts, new_message, new_text_part
from a2a.types import Role, SendMessageConfiguration, SendMessageRequest
from a2a.utils.constants import TransportProtocol
from runner import KEY, equal

TRANSPORTS = {"jsonrpc": TransportProtocol.JSONRPC.value, "rest": TransportProtocol.HTTP_JSON.value}


class Switchboard:
    """A server and the binding to reach it by, and the version where the tests choose it, with the last exchange in view."""

    def __init__(self, address, binding, version, stack):
        self.address = address
        self.binding = binding
        self.version = version
        self.stack = stack
        self.last_request = None
        self.last_response = None

    async def http(self):
        async def note(response):
            self.last_request, self.last_response = response.request, response

        # Nothing here is encrypted, and reading the authorities' certificates takes longer than most of the tests.
        return await self.stack.enter_async_context(
            httpx.AsyncClient(timeout=30, verify=False, event_hooks={"response": [note]})
        )

    async def factory(self, streaming=False, polling=False, http=None, hook=None):
        config = ClientConfig(
            streaming=streaming,
            polling=polling,
            httpx_client=http or await self.http(),
            supported_protocol_bindings=[TRANSPORTS[self.binding]],
            push_notification_config=hook,
        )
        return ClientFactory(config)

    async def client(self, agent, interceptors=None, **settings):
        factory = await self.factory(**settings)
        if self.version:
            return factory.create(await self.card(agent))
        return await factory.create_from_url(f"{self.address}/a2a/{agent}", interceptors)

    async def card(self, agent):
        """The card for the version, which decides what the client speaks."""
        resolver = A2ACardResolver(await self.http(), f"{self.address}/a2a/{agent}")
        return await resolver.get_agent_card(http_kwargs={"headers": {"A2A-Version": self.version}})


class Key(CredentialService):
    """The key, for whichever scheme of the card the client chooses."""

    async def get_credentials(self, security_scheme_name, context):
        return KEY


@contextlib.asynccontextmanager
async def connect(address, binding, version=None):
    async with contextlib.AsyncExitStack() as stack:
        yield Switchboard(address, binding, version, stack)


def request(*parts, task=None, **configuration):
    parts = [new_text_part(part) if isinstance(part, str) else part for part in parts]
    task_id, context_id = (task.id, task.context_id) if task else (None, None)
    message = new_message(parts, context_id=context_id, task_id=task_id, role=Role.ROLE_USER)
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration(**configuration))


async def send(client, *parts, context=None, **fields):
    """The one answer of a client that does not stream: a Task or a Message."""
    answers = [answer async for answer in client.send_message(request(*parts, **fields), context=context)]
    equal(len(answers), 1)
    return getattr(answers[0], answers[0].WhichOneof("payload"))


async def first(stream):
    return await anext(aiter(stream))


def chunks(events):
    return "".join(
        "".join(get_text_parts(event.artifact_update.artifact.parts))
        for event in events
        if event.HasField("artifact_update")
    )
