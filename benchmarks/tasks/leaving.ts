/**
 * How long tasks stand still when one of three workers leaves, gently (as at a SIGTERM) or rudely (SIGKILL), and when another one
 * comes in its place. The tasks have steps of equal length, and their workers say when each has ended: the pause of a task is the time
 * between its last step on one worker and its next one on another, less the length of a step.
 */
import type { Measure, Row } from "../http/report.ts"
import { quantile, spread } from "../lib/statistics.ts"
import type { Databases } from "./database.ts"
import { Program } from "./processes.ts"
import { clock, type Stride } from "./wire.ts"

export interface Plan {
  readonly rounds: number
  /** How many tasks are under way, and how long a step of theirs is, in milliseconds. */
  readonly tasks: number
  readonly step: number
  /** How long a worker is given to take its share, and tasks to be taken over, in milliseconds. */
  readonly settle: number
  readonly patience: number
}

const sleep = (millis: number): Promise<void> => new Promise((later) => setTimeout(later, millis))

/** A step and the worker that it ended on. */
interface Track extends Stride {
  readonly worker: Program
}

/** The steps of each task, in the order in which they ended. */
class Tracks {
  readonly #all = new Map<string, Array<Track>>()

  follow(worker: Program): void {
    worker.onStride = (stride) => {
      const steps = this.#all.get(stride.task)
      if (steps === undefined) this.#all.set(stride.task, [{ ...stride, worker }])
      else steps.push({ ...stride, worker })
    }
  }

  /** The pauses of tasks that went from one worker to another since a time, in milliseconds. */
  pauses(since: number, step: number): Array<number> {
    const pauses: Array<number> = []
    for (const steps of this.#all.values()) {
      const sorted = steps.toSorted((a, b) => a.at - b.at)
      for (let index = 1; index < sorted.length; index++) {
        const before = sorted[index - 1]!
        const after = sorted[index]!
        // What is replayed on the new worker is said again at once: the first one that is new counts.
        if (after.at < since || before.worker === after.worker) continue
        const next = sorted.slice(index).find((track) => track.step > before.step)
        if (next !== undefined) pauses.push(Math.max(0, next.at - before.at - step))
      }
    }
    return pauses
  }
}

const kinds = ["gentle", "rude", "join"] as const
type Kind = (typeof kinds)[number]

const labels: Record<Kind, string> = {
  gentle: "one of three leaves gently",
  rude: "one of three is killed",
  join: "a third one joins"
}

const round = async (databases: Databases, plan: Plan, found: Record<Kind, Array<Array<number>>>): Promise<void> => {
  const at = await databases.create("postgres")
  const tracks = new Tracks()
  const programs: Array<Program> = []
  const worker = async (): Promise<Program> => {
    const { program } = await Program.serving("postgres", at)
    tracks.follow(program)
    programs.push(program)
    return program
  }
  const observe = async (kind: Kind, act: () => Promise<unknown>): Promise<void> => {
    const since = clock()
    await act()
    await sleep(plan.patience)
    found[kind].push(tracks.pauses(since, plan.step))
  }
  try {
    const { program: door } = await Program.serving("postgres", at, { work: false })
    programs.push(door)
    const first = await worker()
    const second = await worker()
    await sleep(plan.settle)
    await door.tell({ do: "march", tasks: plan.tasks, step: plan.step })
    await sleep(plan.settle)
    await observe("join", worker)
    await observe("gentle", () => first.close())
    await worker()
    await sleep(plan.patience)
    await observe("rude", () => second.kill())
  } finally {
    await Promise.all(programs.map((program) => program.kill()))
  }
}

/** Measures on a database of its own in each round. */
export const measure = async (databases: Databases, plan: Plan): Promise<Measure> => {
  const found: Record<Kind, Array<Array<number>>> = { gentle: [], rude: [], join: [] }
  for (let turn = 0; turn < plan.rounds; turn++) await round(databases, plan, found)
  const rowOf = (kind: Kind): Row => {
    const rounds = found[kind].filter((pauses) => pauses.length > 0)
    const at = (share: number) => rounds.length === 0 ? undefined : spread(rounds.map((all) => quantile(all, share)))
    const figures = { p50: at(0.5), p95: at(0.95), max: at(1) }
    return {
      peer: kind,
      label: labels[kind],
      figures: {
        moved: rounds.length === 0 ? 0 : spread(rounds.map((pauses) => pauses.length)).median,
        ...Object.fromEntries(Object.entries(figures).filter(([, figure]) => figure !== undefined))
      } as Row["figures"]
    }
  }
  return {
    name: "leaving",
    era: "request",
    title: `How long a task stands still on PostgreSQL, of ${plan.tasks} with steps of ${plan.step} ms`,
    columns: [
      { key: "moved", title: "tasks moved", unit: "count" },
      { key: "p50", title: "p50 ms", unit: "count" },
      { key: "p95", title: "p95 ms", unit: "count" },
      { key: "max", title: "max ms", unit: "count" }
    ],
    rows: kinds.map(rowOf)
  }
}
