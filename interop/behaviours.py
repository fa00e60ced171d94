"""What an agent built with a Python SDK does for our client to call: `server.py PORT`, 0 for a free one. Prints the port
first.

The first word of a message says what: `echo`, `reply`, `stream COUNT`, `ask`, `fail`, `wait`, `file`, `data` or
`inspect`, which tells the bytes of a file in hexadecimal and returns them in reverse. The names that differ between the
SDKs are the members that a subclass has to give. Each interface has a card of its own as well, under `/only/INTERFACE`.
"""

import asyncio
import os
import socket
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.tasks import TaskUpdater
from starlette.responses import JSONResponse
from starlette.routing import Route

# What the card says that it takes and gives: texts, files and data.
MODES = ["text/plain", "image/png", "application/octet-stream", "application/json"]

# Where to write what was begun and ended, for a judge that outlives this process.
EXECUTIONS = os.environ.get("INTEROP_EXECUTIONS")


def note(what, context):
    if EXECUTIONS:
        with open(EXECUTIONS, "a") as file:
            file.write(f"{what} {os.getpid()} {context.task_id} {context.message.message_id}\n")


class Behaviours(AgentExecutor):
    input_required = None
    ask_options = {}

    def text_part(self, text):
        raise NotImplementedError

    def text_message(self, text, context_id):
        raise NotImplementedError

    def new_task(self, message):
        raise NotImplementedError

    def file_bytes(self, part):
        raise NotImplementedError

    def file_part(self, content):
        raise NotImplementedError

    async def execute(self, context, event_queue):
        note("begin", context)
        try:
            await self.behave(context, event_queue)
        finally:
            note("end", context)

    async def behave(self, context, event_queue):
        word, _, rest = context.get_user_input().partition(" ")
        if word == "reply":
            await event_queue.enqueue_event(self.text_message(rest, context.context_id))
            return
        task = context.current_task
        if task is None:
            task = self.new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)

        def says(text):
            return updater.new_agent_message([self.text_part(text)])

        if task.status.state == self.input_required:
            await updater.add_artifact([self.text_part(f"hello {context.get_user_input()}")], name="greeting")
            await updater.complete()
            return
        await updater.start_work()
        match word:
            case "echo":
                await updater.add_artifact([self.text_part(rest)], name="echo")
                await updater.complete()
            case "stream":
                for number in range(1, int(rest) + 1):
                    await updater.add_artifact(
                        [self.text_part(f"chunk {number}\n")],
                        artifact_id="chunks",
                        append=number > 1,
                        last_chunk=number == int(rest),
                    )
                await updater.complete()
            case "ask":
                await updater.requires_input(says("what is your name?"), **self.ask_options)
            case "fail":
                await updater.failed(says("it did not work"))
            case "wait":
                # Until the SDK cancels this.
                await asyncio.Event().wait()
            case "file" | "data":
                await updater.add_artifact(context.message.parts[1:], name="returned")
                await updater.complete()
            case "inspect":
                content = self.file_bytes(context.message.parts[1])
                await updater.add_artifact([self.text_part(content.hex()), self.file_part(content[::-1])])
                await updater.complete()
            case _:
                await updater.reject(says(f"{word} is nothing this agent does"))

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def only(interface, card):
    """The route to a card with nothing but this interface, as JSON."""

    async def answer(_):
        return JSONResponse(card)

    return Route(f"/only/{interface}/.well-known/agent-card.json", answer)


def serve(application):
    """Serves what `application(address)` gives."""
    # Only where the protocol is named do answers leave without waiting for more.
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        # It comes back at once to where it was.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", int(sys.argv[1])))
        listener.listen()
        port = listener.getsockname()[1]
        print(port, flush=True)
        config = uvicorn.Config(application(f"http://127.0.0.1:{port}"), log_level="warning")
        uvicorn.Server(config).run(sockets=[listener])
