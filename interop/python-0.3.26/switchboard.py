"""A server as the tests of this SDK see it: how they reach it, what they say to it, how they read its answers."""

import contextlib
import uuid

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import Message, Part, Role, TextPart, TransportProtocol
from runner import equal, fails_with

TRANSPORTS = {"jsonrpc": TransportProtocol.jsonrpc, "rest": TransportProtocol.http_json}

# What each error is on the wire: the code of JSON-RPC, the status of HTTP+JSON.
TASK_NOT_FOUND = (-32001, 404)
TASK_NOT_CANCELABLE = (-32002, 409)
PUSH_NOT_SUPPORTED = (-32003, 400)
UNSUPPORTED_OPERATION = (-32004, 400)
NO_EXTENDED_CARD = (-32007, 404)
INVALID_PARAMS = (-32602, 400)


class Switchboard:
    """A server and the binding to reach it by, with the last exchange in view."""

    def __init__(self, address, binding, stack):
        self.address = address
        self.binding = binding
        self.stack = stack
        self.last_request = None
        self.last_response = None

    async def http(self, **settings):
        async def note(response):
            self.last_request, self.last_response = response.request, response

        # Nothing here is encrypted, and reading the authorities' certificates takes longer than most of the tests.
        return await self.stack.enter_async_context(
            httpx.AsyncClient(timeout=30, verify=False, event_hooks={"response": [note]}, **settings)
        )

    async def config(self, streaming=False, polling=False, http=None, hook=None):
        return ClientConfig(
            streaming=streaming,
            polling=polling,
            httpx_client=http or await self.http(),
            supported_transports=[TRANSPORTS[self.binding]],
            push_notification_configs=[hook] if hook else [],
        )

    async def client(self, agent, extensions=None, **settings):
        config = await self.config(**settings)
        return await ClientFactory.connect(f"{self.address}/a2a/{agent}", config, extensions=extensions)

    async def refuses(self, error, awaitable):
        """The call must fail with this error, as far as the binding's client can tell errors apart."""
        code, status = error
        if self.binding == "jsonrpc":
            equal((await fails_with(A2AClientJSONRPCError, awaitable)).error.code, code)
        else:
            equal((await fails_with(A2AClientHTTPError, awaitable)).status_code, status)


@contextlib.asynccontextmanager
async def connect(address, binding, version=None):
    """It speaks one version."""
    async with contextlib.AsyncExitStack() as stack:
        yield Switchboard(address, binding, stack)


def message(*parts, task=None, **fields):
    parts = [Part(root=TextPart(text=part) if isinstance(part, str) else part) for part in parts]
    task_id, context_id = (task.id, task.context_id) if task else (None, None)
    return Message(
        message_id=str(uuid.uuid4()), role=Role.user, parts=parts, task_id=task_id, context_id=context_id, **fields
    )


async def send(client, *parts, **fields):
    """The one answer of a client that does not stream: a Task or a Message."""
    answers = [answer async for answer in client.send_message(message(*parts, **fields))]
    equal(len(answers), 1)
    return answers[0][0] if isinstance(answers[0], tuple) else answers[0]


async def first(stream):
    return await anext(aiter(stream))


def text(parts):
    return "".join(part.root.text for part in parts if isinstance(part.root, TextPart))
