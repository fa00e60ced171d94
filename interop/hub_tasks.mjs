// Tasks at agents behind the hub, as the tests of each JavaScript SDK need them. The calls are the SDK's own.

import { equal, until } from "./runner.mjs";

/**
 * `send`, `get` and `cancel` take a client, `text` the parts of an artifact, `state` a task; `states` and `ends` what a
 * webhook was told.
 */
export const hubTasks = ({ send, get, cancel, text, state, states, ends }) => ({
  texts: (task) => task.artifacts.map((artifact) => text(artifact.parts)),

  /** A task that waits at its agent until it is canceled. */
  async begun(client) {
    const task = await send(client, "wait");
    return until(
      () => get(client, task),
      (task) => state(task).toLowerCase() === "working",
    );
  },

  /** Ends a task, which its webhooks are told. */
  async endedByCancel(client, task, receivers) {
    await cancel(client, task);
    for (const receiver of receivers) {
      const told = await receiver.told(task.id, ends);
      equal(states(told).at(-1).toLowerCase(), "canceled");
    }
  },
});
