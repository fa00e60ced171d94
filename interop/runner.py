"""Runs the tests of a Python client: each one once per binding, one after the other, against the server given as the
first argument. Prints `ok NAME` or `not ok NAME: why`, and ends with 1 if a test failed. Words after the address
choose tests by a part of their name. With a key for the server in INTEROP_KEY, the tests that need one run, and no
others. Tests of agents behind the hub run once per agent named in INTEROP_REMOTES as well, and once per version.
"""

import asyncio
import base64
import hashlib
import os
import sys
import traceback
from functools import partial

BINDINGS = ("jsonrpc", "rest")

# No test needs this long; one that hangs must not stop the others.
PATIENCE_SECONDS = 60

# How long a stream to ask for that is to be dropped and taken up again. On a machine that ends the first one before
# the second connection is there, the next one is longer.
COUNTS = (20_000, 200_000)

KEY = os.environ.get("INTEROP_KEY")

# The agents that the server serves as remote ones: the folder of an SDK, a slash and the interface that they are called by.
# With one of the client's interfaces and `>` in front, only that one calls it.
REMOTES = os.environ.get("INTEROP_REMOTES", "").split()

# How many tests of remote agents run at a time. Most of the time they wait.
AT_ONCE = 8

# What the probe's `file:bytes` holds.
EVERY_BYTE = bytes(range(256))

# Contents of files that must arrive as they are: no text, base64 that is meant as such, and a word that is base64 by chance.
CONTENTS = (EVERY_BYTE, base64.b64encode(EVERY_BYTE), b"test")

_tests = []
_hub_tests = []


def test(function=None, *, only=BINDINGS, keyed=False):
    """Registers a test. Its name is the function's, after the binding's. `only` is for what one binding has, `keyed`
    for what a server has only for callers with a key.
    """

    def register(function):
        bindings = (only,) if isinstance(only, str) else only
        if keyed == bool(KEY) and not REMOTES:
            _tests.append((_operation(function), bindings, function))
        return function

    return register(function) if function else register


def hub_test(function=None, *, lacks=()):
    """Registers a test of an agent behind the hub, which gets the agent's name there beside the server. `lacks` names the
    interfaces on which this SDK's client has no such call.
    """

    def register(function):
        if REMOTES:
            _hub_tests.append((_operation(function), lacks, function))
        return function

    return register(function) if function else register


def _operation(function):
    return function.__name__.replace("_", "-")


def _chosen(versions):
    """Names of tests, with how to connect and what to run."""
    for binding in BINDINGS:
        for operation, bindings, function in _tests:
            if binding in bindings:
                yield f"{binding}-{operation}", (binding,), function
        for version in versions:
            interface = f"{binding}-{version}"
            for remote in REMOTES:
                caller, _, remote = remote.rpartition(">")
                if caller not in ("", interface):
                    continue
                label, agent = remote.replace("-", "@"), remote.replace(".", "-").replace("/", "-")
                for operation, lacks, function in _hub_tests:
                    if interface not in lacks:
                        name = f"{interface}>{label}-{operation}"
                        yield name, (binding, version), partial(function, agent=agent)


async def _succeeds(name, connection, function):
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            async with connection as switchboard:
                await function(switchboard)
        print(f"ok {name}", flush=True)
        return True
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"not ok {name}: {why}", flush=True)
        traceback.print_exc()
        return False


async def _run(connect, address, wanted, versions):
    """Tests of our own agents run one after the other: some take all of the machine."""
    places = asyncio.Semaphore(AT_ONCE if REMOTES else 1)

    async def one(name, interface, function):
        async with places:
            return await _succeeds(name, connect(address, *interface), function)

    chosen = [test for test in _chosen(versions) if not wanted or any(part in test[0] for part in wanted)]
    return all(await asyncio.gather(*(one(*test) for test in chosen)))


def main(connect, versions=()):
    """Called at the end of a test program. `connect(address, binding)` gives each test what it talks to; with a version
    beside it where an agent behind the hub is to be spoken to in each of them.
    """
    address, *wanted = sys.argv[1:]
    sys.exit(0 if asyncio.run(_run(connect, address.rstrip("/"), wanted, versions)) else 1)


def equal(actual, expected):
    """An assertion that says what it saw."""
    assert actual == expected, f"expected {_short(expected)}, got {_short(actual)}"


def _short(value):
    said = repr(value)
    return said if len(said) <= 500 else f"{said[:250]} … {said[-250:]}"


def numbered(count):
    """What the probe's `stream:COUNT` and `streamy:COUNT` say in all."""
    return "".join(f"chunk {number}\n" for number in range(1, count + 1))


def digest(content):
    """What the probe's `digest` says of a file."""
    return f"{len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}"


async def fails_with(kind, awaitable):
    """The error that the call must end in."""
    try:
        result = await awaitable
    except kind as error:
        return error
    raise AssertionError(f"expected {kind.__name__}, got {result!r}")


async def until(ask, done):
    """Polls the way a client does: asks again until the answer is the wanted one. The runner's patience ends it."""
    while not done(answer := await ask()):
        await asyncio.sleep(0.01)
    return answer
