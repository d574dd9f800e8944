/**
 * Outages of the database: every connection breaks, and a transaction that was being committed may be committed or
 * not.
 */
import { setTimeout as sleep } from "node:timers/promises"
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
