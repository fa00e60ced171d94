"""Runs the tests of a Python client: each one once per binding, one after the other, against the server given as the
first argument. Prints `ok NAME` or `not ok NAME: why`, and ends with 1 if a test failed. Words after the address
choose tests by a part of their name. With a key for the server in INTEROP_KEY, the tests that need one run, and no
others. Tests of agents behind the hub run once per agent named in INTEROP_REMOTES as well.
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

# The folders of the SDKs whose agents the server serves as remote ones.
REMOTES = os.environ.get("INTEROP_REMOTES", "").split()

# What the probe's `file:bytes` holds.
EVERY_BYTE = bytes(range(256))

# Contents of files that must arrive as they are: no text, base64 that is meant as such, and a word that is base64 by chance.
CONTENTS = (EVERY_BYTE, base64.b64encode(EVERY_BYTE), b"test")

_tests = []


def test(function=None, *, only=BINDINGS, keyed=False):
    """Registers a test. Its name is the function's, after the binding's. `only` is for what one binding has, `keyed`
    for what a server has only for callers with a key.
    """

    def register(function):
        bindings = (only,) if isinstance(only, str) else only
        if keyed == bool(KEY) and not REMOTES:
            _tests.append((_operation(function), bindings, "", function))
        return function

    return register(function) if function else register


def hub_test(function):
    """Registers a test of an agent behind the hub, which gets the agent's name there beside the server."""
    for remote in REMOTES:
        agent = remote.replace(".", "-")
        _tests.append((_operation(function), BINDINGS, f">{remote.replace('-', '@')}", partial(function, agent=agent)))
    return function


def _operation(function):
    return function.__name__.replace("_", "-")


async def _run(connect, address, wanted):
    failures = 0
    for binding in BINDINGS:
        for operation, bindings, remote, function in _tests:
            name = f"{binding}{remote}-{operation}"
            if binding not in bindings or not (not wanted or any(part in name for part in wanted)):
                continue
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    async with connect(address, binding) as switchboard:
                        await function(switchboard)
                print(f"ok {name}", flush=True)
            except Exception as error:
                failures += 1
                why = " ".join(f"{type(error).__name__}: {error}".split())
                print(f"not ok {name}: {why}", flush=True)
                traceback.print_exc()
    return failures


def main(connect):
    """Called at the end of a test program. `connect(address, binding)` gives each test what it talks to."""
    address, *wanted = sys.argv[1:]
    sys.exit(1 if asyncio.run(_run(connect, address.rstrip("/"), wanted)) else 0)


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
