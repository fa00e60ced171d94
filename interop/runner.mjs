// Runs the tests of a JavaScript client: each one once per binding, one after the other, against the server given as
// the first argument. Prints `ok NAME` or `not ok NAME: why`, and ends with 1 if a test failed. Words after the address
// choose tests by a part of their name. With a key for the server in INTEROP_KEY, the tests that need one run, and no
// others. Tests of agents behind the hub run once per agent named in INTEROP_REMOTES as well, and once per version.

import { AssertionError, deepStrictEqual } from "node:assert";
import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";

const BINDINGS = ["jsonrpc", "rest"];

// No test needs this long; one that hangs must not stop the others.
const PATIENCE_MS = 60_000;

// How long a stream to ask for that is to be dropped and taken up again. On a machine that ends the first one before
// the second connection is there, the next one is longer.
export const COUNTS = [20_000, 200_000];

export const KEY = process.env.INTEROP_KEY;

// The agents that the server serves as remote ones: the folder of an SDK, a slash and the interface that they are called by.
// With one of the client's interfaces and `>` in front, only that one calls it.
const REMOTES = (process.env.INTEROP_REMOTES ?? "").split(" ").filter(Boolean);

// How many tests of remote agents run at a time. Most of the time they wait.
const AT_ONCE = 8;

/** What the probe's `file:bytes` holds. */
export const EVERY_BYTE = Buffer.from(Uint8Array.from({ length: 256 }, (_, index) => index));

/** Contents of files that must arrive as they are: no text, base64 that is meant as such, a word that is base64 by chance. */
export const CONTENTS = [EVERY_BYTE, Buffer.from(EVERY_BYTE.toString("base64")), Buffer.from("test")];

const tests = [];
const hubTests = [];

/**
 * Registers a test. Its full name has the binding before it. `only` is for what one binding has, `keyed` for what a
 * server has only for callers with a key.
 */
export function test(operation, run, { only, keyed = false } = {}) {
  if (keyed !== Boolean(KEY) || REMOTES.length > 0) return;
  tests.push({ operation, run, bindings: only ? [only] : BINDINGS });
}

/**
 * Registers a test of an agent behind the hub, which gets the agent's name there beside the server. `lacks` names the
 * interfaces on which this SDK's client has no such call.
 */
export function hubTest(operation, run, { lacks = [] } = {}) {
  if (REMOTES.length > 0) hubTests.push({ operation, run, lacks });
}

/** Names of tests, with how to connect and what to run. */
function chosen(versions) {
  const all = [];
  for (const binding of BINDINGS) {
    for (const { operation, run, bindings } of tests) {
      if (bindings.includes(binding)) all.push({ name: `${binding}-${operation}`, interfaceOf: [binding], run });
    }
    for (const version of versions) {
      for (const called of REMOTES) {
        const [remote, caller] = called.split(">").reverse();
        if (caller && caller !== `${binding}-${version}`) continue;
        const [label, agent] = [remote.replaceAll("-", "@"), remote.replaceAll(/[./]/g, "-")];
        for (const { operation, run, lacks } of hubTests) {
          if (lacks.includes(`${binding}-${version}`)) continue;
          const name = `${binding}-${version}>${label}-${operation}`;
          all.push({ name, interfaceOf: [binding, version], run: (switchboard) => run(switchboard, agent) });
        }
      }
    }
  }
  return all;
}

/**
 * Called at the end of a test program. `connect(address, binding)` gives each test what it talks to; with a version beside it
 * where an agent behind the hub is to be spoken to in each of them.
 */
export async function main(connect, versions = []) {
  const [address, ...wanted] = process.argv.slice(2);
  const isWanted = ({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part));
  const left = chosen(versions).filter(isWanted);
  let failures = 0;
  const work = async () => {
    for (let next = left.shift(); next; next = left.shift()) {
      const { name, interfaceOf, run } = next;
      const patience = new AbortController();
      try {
        const late = pause(PATIENCE_MS, undefined, { signal: patience.signal }).then(() => {
          throw new Error(`no end within ${PATIENCE_MS} ms`);
        });
        await Promise.race([run(connect(address.replace(/\/+$/, ""), ...interfaceOf)), late]);
        console.log(`ok ${name}`);
      } catch (error) {
        failures += 1;
        console.log(`not ok ${name}: ${`${error?.name}: ${error?.message}`.replace(/\s+/g, " ")}`);
        console.error(error);
      } finally {
        patience.abort();
      }
    }
  };
  // Tests of our own agents run one after the other: some take all of the machine.
  await Promise.all(Array.from({ length: REMOTES.length > 0 ? AT_ONCE : 1 }, work));
  // Streams that a test dropped may still hold the process.
  process.exit(failures > 0 ? 1 : 0);
}

/** An assertion that says what it saw. */
export function equal(actual, expected) {
  try {
    deepStrictEqual(actual, expected);
  } catch {
    throw new AssertionError({ message: `expected ${short(expected)}, got ${short(actual)}` });
  }
}

function short(value) {
  const said = JSON.stringify(value) ?? "nothing";
  return said.length <= 500 ? said : `${said.slice(0, 250)} … ${said.slice(-250)}`;
}

/** An assertion about something else than one value. */
export function holds(condition, what) {
  if (!condition) throw new AssertionError({ message: what });
}

/** The error that the call must end in. */
export async function failsWith(kind, call) {
  let result;
  try {
    result = await call();
  } catch (error) {
    holds(error instanceof kind, `expected ${kind.name}, got ${error?.name}: ${error?.message}`);
    return error;
  }
  throw new AssertionError({ message: `expected ${kind.name}, got ${JSON.stringify(result)}` });
}

/** The same of a stream. Over JSON-RPC clients of version 0.3 wrap what it is refused with. */
export async function streamFailsWith(kind, call) {
  const error = await failsWith(Error, call);
  holds([error, error.cause].some((refusal) => refusal instanceof kind), `expected ${kind.name}, got ${error.message}`);
}

/** Polls the way a client does: asks again until the answer is the wanted one. The runner's patience ends it. */
export async function until(ask, done) {
  for (;;) {
    const answer = await ask();
    if (done(answer)) return answer;
    await pause(10);
  }
}

export async function collect(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

export async function first(stream) {
  for await (const event of stream) return event;
  throw new AssertionError({ message: "the stream ended before its first event" });
}

/** What the probe's `stream:COUNT` and `streamy:COUNT` say in all. */
export function numbered(count) {
  return Array.from({ length: count }, (_, index) => `chunk ${index + 1}\n`).join("");
}

/** What the probe's `digest` says of a file. */
export function digest(content) {
  return `${content.length} bytes, sha256 ${createHash("sha256").update(content).digest("hex")}`;
}
