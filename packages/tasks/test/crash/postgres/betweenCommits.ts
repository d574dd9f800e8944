/**
 * Kills between the writes of the workflow engine and of the store: a process dies when one of the two is written,
 * and the other is not.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { Caller, cancel, endOf } from "./caller.ts"
import type { Fleet } from "./fleet.ts"
import { whole } from "./zombies.ts"

/** Waits until the process has ended and the database has dropped its statements. */
const fell = async (fleet: Fleet, pid: number | undefined, gone: Promise<unknown>): Promise<void> => {
  await gone
  await fleet.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", [
    `skein ${pid}`
  ])
}

/** Lets half a minute without a change pass, which the sweeper waits for. */
const age = (fleet: Fleet, task: string): Promise<unknown> =>
  fleet.query("UPDATE skein_tasks SET updated_at = updated_at - 60000 WHERE id = $1", [task])

/** Waits until a row has a value. */
const status = (fleet: Fleet, task: string, status: string): Promise<void> =>
  fleet.eventually(`a row that is ${status}`, async () => {
    const [row] = await fleet.query<{ status: string }>("SELECT status FROM skein_tasks WHERE id = $1", [task])
    return row?.status === status
  })

/**
 * The front server is killed while it submits. Neither the store nor the workflow engine has a task, and the counters
 * do not include one.
 */
export const whileSubmitted = async (fleet: Fleet): Promise<void> => {
  const count = () =>
    fleet.query(
      `SELECT (SELECT count(*) FROM skein_tasks) AS tasks, (SELECT count(*) FROM cluster_messages) AS messages,
         (SELECT retained FROM skein_task_counts WHERE kind = 0) AS retained`
    )
  const before = await count()
  const caller = await Caller.open(fleet.serverUrl, { tasks: false })
  const unlock = await fleet.lock("cluster_messages")
  const called = caller.call("held", { gates: [] })
  const { pid } = fleet.front!.process
  await fleet.stuck(pid, /^\s*INSERT INTO "cluster_messages"/)
  await fell(fleet, pid, fleet.front!.kill("SIGKILL"))
  await unlock()
  fleet.same("killed while it submits: what the caller hears", await called, "Closed")
  fleet.same("killed while it submits: what is there", await count(), before)
  await caller.close()
  await fleet.openDoor()
}

/**
 * The front server is killed when the row is cancelled, and the workflow engine is not interrupted. The sweeper
 * interrupts it, and all steps are compensated.
 */
export const whileCancelled = async (fleet: Fleet): Promise<void> => {
  const what = "killed while it cancels"
  const caller = await Caller.open(fleet.serverUrl)
  const task = await caller.start("held", { gates: ["sleep"] })
  await fleet.eventually(`${what}: asleep`, async () => "inside" in await fleet.traces(task.id))
  await sleep(300)
  const unlock = await fleet.lock("cluster_messages")
  const cancelled = cancel(task).then(() => "cancelled", () => "unknown")
  const { pid } = fleet.front!.process
  await fleet.stuck(pid, /"cluster_messages"/)
  await status(fleet, task.id, "cancelled")
  await fell(fleet, pid, fleet.front!.kill("SIGKILL"))
  await unlock()
  await fleet.openDoor()
  await age(fleet, task.id)
  fleet.same(`${what}: what the caller hears`, ["cancelled", "unknown"].includes(await cancelled), true)
  fleet.same(`${what}: its end`, await endOf(task), "TaskCancelled")
  await fleet.settled(task.id, what)
  fleet.same(`${what}: its traces`, await fleet.traces(task.id), {
    outside: "one effect",
    "inside out": "one effect",
    inside: "committed once",
    undo: "committed once"
  })
  await caller.close()
}

/** A worker is killed when the row is completed, and the execution has not ended. Nothing of it runs again. */
export const whileEnded = async (fleet: Fleet): Promise<void> => {
  const what = "killed while it ends"
  const caller = await Caller.open(fleet.serverUrl)
  const task = await caller.start("held", { gates: ["end"] })
  const gate = `${task.id} end`
  const pid = await fleet.outside.until(() => fleet.outside.at(gate)[0], what)
  const worker = fleet.workerOf(pid)
  const unlock = await fleet.lock("cluster_replies")
  fleet.outside.openForGood(gate)
  await status(fleet, task.id, "completed")
  await fleet.stuck(pid, /"cluster_replies"/)
  await fell(fleet, pid, fleet.leave(worker, "SIGKILL"))
  await unlock()
  fleet.same(`${what}: its end`, await endOf(task), "Let go")
  await fleet.join()
  await age(fleet, task.id)
  await fleet.settled(task.id, what)
  const unread = "SELECT count(*) FROM cluster_messages WHERE entity_id = $1 AND NOT processed"
  await fleet.eventually(`${what}: read by another`, async () => {
    const [row] = await fleet.query<{ count: string }>(unread, [task.id])
    return row?.count === "0"
  })
  fleet.same(`${what}: its traces`, await fleet.traces(task.id), whole)
  fleet.same(`${what}: its calls`, fleet.outside.done.filter((done) => done.task === task.id).length, 2)
  await caller.close()
}
