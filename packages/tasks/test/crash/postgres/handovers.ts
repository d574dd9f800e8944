/**
 * Handovers: tasks whose worker is shut down or killed while it compensates, questions that one front server has
 * asked and another receives the answer of, and calls whose front server is killed.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { Caller, cancel, endOf } from "./caller.ts"
import type { Fleet } from "./fleet.ts"
import { whole } from "./zombies.ts"

/** A worker is shut down in the middle of a step, and waits for it for a limited time. Nothing is compensated. */
export const gently = async (fleet: Fleet, where: "outside" | "between" | "inside"): Promise<void> => {
  const { outside } = fleet
  const what = `SIGTERM ${where}`
  const caller = await Caller.open(fleet.serverUrl)
  const task = await caller.start("held", { gates: [where] })
  const gate = `${task.id} ${where}`
  const old = await outside.until(() => outside.at(gate)[0], what)
  const left = fleet.leave(fleet.workerOf(old), "SIGTERM")
  await outside.until(() => outside.at(gate).find((pid) => pid !== old), `${what}: an heir`)
  outside.openForGood(gate)
  fleet.same(`${what}: its end`, await endOf(task), "Let go")
  fleet.same(`${what}: its traces`, await fleet.traces(task.id), whole)
  await left
  await fleet.join()
  await caller.close()
}

/** A worker stops while it compensates a cancelled task: another one continues the compensations. */
export const whileUndoing = async (fleet: Fleet, signal: "SIGTERM" | "SIGKILL"): Promise<void> => {
  const { outside } = fleet
  const what = `${signal} while it undoes`
  const caller = await Caller.open(fleet.serverUrl)
  const task = await caller.start("held", { gates: ["sleep", "undo"] })
  await fleet.eventually(`${what}: asleep`, async () => "inside" in await fleet.traces(task.id))
  await cancel(task)
  const gate = `${task.id} undo`
  const old = await outside.until(() => outside.at(gate)[0], what)
  const left = fleet.leave(fleet.workerOf(old), signal)
  await outside.until(() => outside.at(gate).find((pid) => pid !== old), `${what}: an heir`)
  outside.openForGood(gate)
  await left
  fleet.same(`${what}: its end`, await endOf(task), "TaskCancelled")
  await fleet.eventually(`${what}: undone`, async () => "inside out" in await fleet.traces(task.id))
  fleet.same(`${what}: its traces`, await fleet.traces(task.id), {
    outside: "one effect",
    "inside out": "one effect",
    inside: "committed once",
    undo: "committed once"
  })
  await fleet.join()
  await caller.close()
}

/**
 * A task asks; then all processes involved are killed; another front server, at another address, receives the answer
 * from another client.
 */
export const questions = async (fleet: Fleet): Promise<void> => {
  const what = "asked before the kill, answered after it"
  const silent = await Caller.open(fleet.serverUrl, { answers: false })
  const task = await silent.start("held", { gates: ["question"] })
  await fleet.eventually(`${what}: asked`, async () => {
    const rows = await fleet.query("SELECT 1 FROM skein_tasks WHERE id = $1 AND status = 'input_required'", [task.id])
    return rows.length === 1
  })
  await silent.close()
  const old = [...fleet.workers]
  await Promise.all([fleet.front!.kill("SIGKILL"), ...old.map((worker) => fleet.leave(worker, "SIGKILL"))])
  const [serverUrl] = await Promise.all([fleet.openOtherServer(), ...old.map(() => fleet.join())])
  const other = await Caller.open(serverUrl)
  fleet.same(`${what}: its end`, await other.take(task.handle), "Let go")
  fleet.same(`${what}: its traces`, await fleet.traces(task.id), whole)
  await other.close()
  await fleet.openDoor()
}

/**
 * Waiting calls whose front server is killed: a client with the task id receives the end, and the other tasks end as
 * well.
 */
export const waiting = async (fleet: Fleet): Promise<void> => {
  const { outside } = fleet
  const what = "the front server killed"
  const [patient, plain] = [await Caller.open(fleet.serverUrl), await Caller.open(fleet.serverUrl, { tasks: false })]
  const known = await patient.start("held", { gates: ["between"] })
  const end = endOf(known)
  const lost = plain.call("held", { gates: ["between"] })
  const gates = await outside.until(() => outside.gates.length === 2 && outside.gates, what)
  await fleet.front!.kill("SIGKILL")
  fleet.same(`${what}: the response without tasks`, await lost, "Closed")
  for (const gate of gates) outside.openForGood(gate)
  await fleet.openDoor()
  fleet.same(`${what}: the response with tasks`, await end, "Let go")
  for (const gate of gates) {
    const task = gate.split(" ")[0]!
    await fleet.eventually(`${what}: both end`, async () => "last" in await fleet.traces(task))
    fleet.same(`${what}: its traces`, await fleet.traces(task), whole)
  }
  await patient.close()
  await plain.close()
}

/**
 * The front server is shut down while clients without tasks look at forms. The tasks are not undone: their questions
 * stay open, and another client answers them.
 */
export const deploy = async (fleet: Fleet, legacy: boolean): Promise<void> => {
  const what = `a deploy under ${legacy ? "a session" : "a waiting call"} with an open form`
  const known = new Set((await fleet.query<{ id: string }>("SELECT id FROM skein_tasks")).map(({ id }) => id))
  const caller = await Caller.open(fleet.serverUrl, { answers: false, tasks: false, legacy })
  // The client looks at the form, and the call does not end.
  void caller.call("held", { gates: ["question"] }).catch(() => {})
  let id = ""
  const statusOf = async () => {
    const rows = await fleet.query<{ id: string; status: string }>(
      "SELECT id, status FROM skein_tasks WHERE tool = 'held'"
    )
    const row = rows.find(({ id }) => !known.has(id))
    id = row?.id ?? ""
    return row?.status
  }
  await fleet.eventually(`${what}: asked`, async () => await statusOf() === "input_required" && caller.forms > 0)
  const begun = performance.now()
  const code = await fleet.front!.kill("SIGTERM")
  const took = performance.now() - begun
  fleet.same(`${what}: the exit code of the server`, code === 130 || code === 143 ? "a signal" : code, "a signal")
  if (took > 10_000) fleet.problems.push(`${what}: SIGTERM took ${Math.round(took)} ms`)
  await fleet.openDoor()
  await sleep(1000)
  fleet.same(`${what}: the status of its task`, await statusOf(), "input_required")
  const other = await Caller.open(fleet.serverUrl)
  fleet.same(`${what}: its end for another client`, await other.take({ taskId: id }), "Let go")
  fleet.same(`${what}: its traces`, await fleet.traces(id), whole)
  await caller.close()
  await other.close()
}
