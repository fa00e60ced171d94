// What an agent has begun and ended, written to a file for a judge that outlives the agent's process.

import { appendFileSync } from "node:fs";

const EXECUTIONS = process.env.INTEROP_EXECUTIONS;

/** Runs an execution between two notes. */
export async function noted({ taskId, userMessage }, execution) {
  const note = (what) =>
    EXECUTIONS && appendFileSync(EXECUTIONS, `${what} ${process.pid} ${taskId} ${userMessage.messageId}\n`);
  note("begin");
  try {
    await execution();
  } finally {
    note("end");
  }
}
