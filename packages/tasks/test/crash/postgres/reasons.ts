/**
 * The reasons of compensations: of a task that fails while it is cancelled, and of a task that is cancelled while it
 * compensates.
 */
import { Caller, cancel, endOf } from "./caller.ts"
import type { Fleet, Traces } from "./fleet.ts"

const undone: Traces = {
  outside: "one effect",
  last: "one effect",
  "inside out": "one effect",
  inside: "committed once",
  undo: "committed once"
}

/** A cancellation is stored; the worker is stopped, and its handler fails before it learns of it. */
export const cancelledBeforeFailure = async (fleet: Fleet): Promise<void> => {
  const { outside } = fleet
  const what = "cancelled, and failed then"
  const caller = await Caller.open(fleet.serverUrl)
  const task = await caller.start("held", { gates: ["end", "fail"] })
  const gate = `${task.id} end`
  const pid = await outside.until(() => outside.at(gate)[0], what)
  process.kill(pid, "SIGSTOP")
  await cancel(task)
  // Both events are there when it continues.
  outside.openForGood(gate)
  process.kill(pid, "SIGCONT")
  fleet.same(`${what}: its end`, await endOf(task), "TaskCancelled")
  await fleet.settled(task.id, what)
  fleet.same(`${what}: its reasons`, fleet.reasons(task.id), ["cancelled"])
  fleet.same(`${what}: its traces`, await fleet.traces(task.id), undone)
  await caller.close()
}

/** A failed task compensates, and is cancelled meanwhile. With a signal, its worker ends then. */
export const cancelledAfterFailure = async (fleet: Fleet, signal?: "SIGTERM" | "SIGKILL"): Promise<void> => {
  const { outside } = fleet
  const what = `failed, and cancelled while it compensates${signal === undefined ? "" : `, then ${signal}`}`
  const caller = await Caller.open(fleet.serverUrl)
  const task = await caller.start("held", { gates: ["undo", "fail"] })
  const gate = `${task.id} undo`
  const pid = await outside.until(() => outside.at(gate)[0], what)
  await cancel(task)
  if (signal !== undefined) {
    await fleet.leave(fleet.workerOf(pid), signal)
    await fleet.join()
  }
  outside.openForGood(gate)
  fleet.same(`${what}: its end`, await endOf(task), "TaskCancelled")
  await fleet.settled(task.id, what)
  fleet.same(`${what}: its reasons`, fleet.reasons(task.id), ["failed"])
  fleet.same(`${what}: its traces`, await fleet.traces(task.id), undone)
  await caller.close()
}
