/**
 * Workers that are stopped in the middle, lose their tasks to others, and continue.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { Caller, endOf } from "./caller.ts"
import type { Fleet, Traces } from "./fleet.ts"

/**
 * Where the worker is stopped: in a step that acts outside, between two steps, in a transactional step that has
 * written.
 */
export type Where = "outside" | "between" | "inside"

/** The effects of a task that waited, and ended with success. */
export const whole: Traces = { outside: "one effect", last: "one effect", inside: "committed once" }

/** Which of the two workers continues first. Returns the milliseconds until another worker had the task. */
export const zombie = async (fleet: Fleet, where: Where, first: "zombie" | "heir"): Promise<number> => {
  const { outside } = fleet
  const what = `stopped ${where}, the ${first} first`
  const caller = await Caller.open(fleet.serverUrl)
  const task = await caller.start("held", { gates: [where] })
  const gate = `${task.id} ${where}`
  const old = await outside.until(() => outside.at(gate)[0], what)
  process.kill(old, "SIGSTOP")
  const begun = performance.now()
  const heir = await outside.until(() => outside.at(gate).find((pid) => pid !== old), `${what}: an heir`)
  const took = performance.now() - begun
  const wake = () => {
    // The response that it waits for is there when it continues.
    outside.open(gate, old)
    process.kill(old, "SIGCONT")
  }
  if (first === "zombie") {
    wake()
    // It detects on its own that it has lost the task.
    await sleep(1200)
    outside.openForGood(gate)
  } else {
    outside.open(gate, heir)
    fleet.same(`${what}: its end before the zombie wakes`, await endOf(task), "Let go")
    wake()
    await sleep(300)
  }
  fleet.same(`${what}: its end`, await endOf(task), "Let go")
  fleet.same(`${what}: its traces`, await fleet.traces(task.id), whole)
  await caller.close()
  return took
}

/**
 * A worker that is stopped in the middle of its commit, with locked rows that others must read. `wakes`: it continues
 * before the database ends its transaction, and before another worker takes the step over.
 */
export const frozen = async (fleet: Fleet, wakes: boolean): Promise<number> => {
  const { outside } = fleet
  const what = `stopped in its commit${wakes ? ", and woken up" : ""}`
  const caller = await Caller.open(fleet.serverUrl)
  const task = await caller.start("held", { gates: ["inside"] })
  const gate = `${task.id} inside`
  const old = await outside.until(() => outside.at(gate)[0], what)
  const unlock = await fleet.lock("skein_task_log")
  outside.open(gate)
  await fleet.stuck(old, /^\s*INSERT INTO skein_task_log/)
  process.kill(old, "SIGSTOP")
  const begun = performance.now()
  await unlock()
  if (wakes) await sleep(200)
  else {
    await outside.until(() => outside.at(gate).find((pid) => pid !== old), `${what}: an heir`)
    outside.open(gate)
    fleet.same(`${what}: its end before it wakes`, await endOf(task), "Let go")
  }
  const took = performance.now() - begun
  process.kill(old, "SIGCONT")
  fleet.same(`${what}: its end`, await endOf(task), "Let go")
  fleet.same(`${what}: its traces`, await fleet.traces(task.id), whole)
  await caller.close()
  return took
}

/** A worker loses its connection in the middle of a transactional step, and nothing else: the step runs again. */
export const severed = async (fleet: Fleet): Promise<void> => {
  const { outside } = fleet
  const what = "its connection severed"
  const caller = await Caller.open(fleet.serverUrl)
  const task = await caller.start("held", { gates: ["inside"] })
  const gate = `${task.id} inside`
  const [worker] = await outside.until(() => outside.at(gate).length === 1 && outside.at(gate), what)
  await fleet.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND state = 'idle in transaction'",
    [`skein ${worker}`]
  )
  // The run that has lost its connection may still wait: opening the gate lets the next run pass, too.
  outside.openForGood(gate)
  fleet.same(`${what}: its end`, await endOf(task), "Let go")
  fleet.same(`${what}: its traces`, await fleet.traces(task.id), whole)
  await caller.close()
}
