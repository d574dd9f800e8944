/**
 * Outages of the database: every connection breaks, and a transaction that was being committed may be committed or
 * not.
 */
import { setTimeout as sleep } from "node:timers/promises"
import type { Child } from "../child.ts"
import { Caller, endOf } from "./caller.ts"
import type { Fleet } from "./fleet.ts"
import type { Gate } from "./tools.ts"
import { whole } from "./zombies.ts"

/** A task is at each of these points when the database stops. */
const places: ReadonlyArray<Gate> = ["outside", "between", "inside", "end"]

/**
 * `pg_ctl restart -m immediate`, or `kill -9` of the server, and milliseconds without a server. All tasks continue,
 * also meanwhile.
 */
export const outage = async (fleet: Fleet, down: "restart" | number): Promise<void> => {
  const { outside, postgres } = fleet
  const what = down === "restart" ? "the database restarted" : `the database gone for ${down} ms`
  const caller = await Caller.open(fleet.serverUrl)
  const tasks = await Promise.all(
    places.flatMap((place) => [place, place]).map((place) => caller.start("held", { gates: [place] }))
  )
  const beats = await Promise.all([40, 90, 200].map((every) => caller.start("beats", { every, times: 15 })))
  await outside.until(() => outside.gates.length === tasks.length, `${what}: all in their places`)
  const opening = setInterval(() => {
    for (const gate of outside.gates) outside.open(gate)
  }, 150)
  if (down === "restart") await postgres.restartImmediate()
  else {
    await postgres.kill()
    await sleep(down)
    await postgres.start()
  }
  for (const task of tasks) {
    fleet.same(`${what}: its end`, await endOf(task), "Let go")
    fleet.same(`${what}: its traces`, await fleet.traces(task.id), whole)
  }
  for (const task of beats) {
    fleet.same(`${what}: the end of the beats`, await endOf(task), "Silence")
    const effects = Object.values(await fleet.traces(task.id))
    fleet.same(`${what}: the beats`, effects, Array.from({ length: 15 }, () => "one effect"))
  }
  clearInterval(opening)
  await caller.close()
}

/**
 * The database is restarted while a process starts, at each of these milliseconds after its start. The process waits
 * for the database, and does not end.
 */
export const starts = async (fleet: Fleet, role: "worker" | "front", moments: ReadonlyArray<number>): Promise<void> => {
  for (const moment of moments) {
    const what = `the database restarted ${moment} ms after the start of a ${role}`
    fleet.describeStage = () => what
    const child = fleet.startProcess(role)
    await sleep(moment)
    await fleet.postgres.restartImmediate()
    const ready = await Promise.race([child.message<object>(), sleep(30_000, "never" as const, { ref: false })])
    fleet.same(
      `${what}: it has started`,
      ready === undefined || ready === "never" ? await endOfProcess(child) : true,
      true
    )
    await child.kill("SIGKILL")
  }
  const caller = await Caller.open(fleet.serverUrl)
  fleet.same("after the restarts: a task", await endOf(await caller.start("held", { gates: [] })), "Let go")
  await caller.close()
}

const endOfProcess = async (child: Child): Promise<string> => {
  const end = await Promise.race([child.ended, sleep(100, "still running", { ref: false })])
  return `${end}: ${child.err.slice(0, 600)}`
}
