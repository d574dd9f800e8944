/**
 * How long tasks pause when workers come and go: tasks that act again and again, and the times of their effects.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { Caller, cancel } from "./caller.ts"
import type { Fleet } from "./fleet.ts"
import type { Done } from "./outsideServer.ts"

/** Milliseconds. */
export interface Figures {
  /** Between two effects of a task that had to move. */
  readonly pause: ReadonlyArray<number>
  /** From the incident to the first effect elsewhere. */
  readonly takeover: ReadonlyArray<number>
  /** The longest time between two effects, of each task without an incident. */
  readonly others: ReadonlyArray<number>
}

/** The number of tasks, and the milliseconds between two effects of each. */
const tasks = 18
const every = 200

/** The incidents of workers: one is shut down, killed, or stopped; or one more joins. */
export type Going = "SIGTERM" | "SIGKILL" | "SIGSTOP" | "join"

/** Milliseconds for which the other tasks are measured. */
const watched = 4000

/** Repeats an incident, and returns all measurements. */
export const pauses = async (fleet: Fleet, going: Going, rounds: number): Promise<Figures> => {
  const { outside } = fleet
  const caller = await Caller.open(fleet.serverUrl)
  const all = await Promise.all(Array.from({ length: tasks }, () => caller.start("beats", { every, times: 100_000 })))
  const figures = { pause: new Array<number>(), takeover: new Array<number>(), others: new Array<number>() }
  const beats = (from: number) => {
    const byTask = new Map<string, Array<Done>>(all.map(({ id }) => [id, []]))
    for (const done of outside.done.slice(from)) byTask.get(done.task)?.push(done)
    return byTask
  }
  for (let round = 0; round < rounds; round++) {
    const from = outside.done.length
    await outside.until(() => [...beats(from).values()].every((own) => own.length >= 5), "all tasks beat")
    const last = [...beats(from).values()].map((own) => own.at(-1)!)
    const counts = Map.groupBy(last, ({ worker }) => worker)
    const [busiest] = [...counts].toSorted(([, a], [, b]) => b.length - a.length)[0]!
    const begun = performance.now()
    const worker = fleet.workerOf(busiest)
    if (going === "join") await fleet.join()
    else if (going === "SIGSTOP") worker.process.kill("SIGSTOP")
    else void fleet.leave(worker, going)
    const concerned = last.filter((done) => going !== "join" && done.worker === busiest).map(({ task }) => task)
    await outside.until(
      () => {
        const now = beats(from)
        return concerned.every((task) => now.get(task)!.at(-1)!.worker !== busiest)
      },
      `${going}: all that were on it go on elsewhere`,
      60_000
    )
    await sleep(Math.max(0, watched - (performance.now() - begun)))
    for (const [task, own] of beats(from)) {
      const gaps = own.slice(1).map((done, index) => ({
        done,
        gap: done.at - own[index]!.at,
        moved: done.worker !== own[index]!.worker
      }))
      const after = gaps.filter(({ done }) => done.at > begun)
      const first = after.find(({ moved }) => moved)
      if (going === "join" ? first !== undefined : concerned.includes(task)) {
        figures.pause.push(first!.gap)
        figures.takeover.push(first!.done.at - begun)
      } else figures.others.push(Math.max(...after.map(({ gap }) => gap)))
    }
    if (going === "SIGSTOP") {
      worker.process.kill("SIGCONT")
      await fleet.leave(worker, "SIGKILL")
    }
    if (going === "join") await fleet.leave([...fleet.workers].at(-1)!, "SIGTERM")
    else await fleet.join()
    await sleep(1500)
  }
  await Promise.all(all.map(cancel))
  await caller.close()
  return figures
}

const part = (sorted: ReadonlyArray<number>, share: number): string =>
  sorted.length === 0 ? "-" : `${Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!)}`

/** p50, p95 and the longest, in milliseconds. */
export const formatMillis = (figures: ReadonlyArray<number>): string => {
  const sorted = figures.toSorted((a, b) => a - b)
  return `${part(sorted, 0.5)} / ${part(sorted, 0.95)} / ${part(sorted, 1)} ms (${sorted.length})`
}
