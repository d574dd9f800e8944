/**
 * How long tasks pause when one of three workers shuts down (as after a SIGTERM) or is killed (SIGKILL), and when
 * another one joins. The tasks have steps of equal duration, and workers report the end of each step. The pause of a
 * task is the time between the end of its last step on one worker and of its next step on another, minus the duration
 * of a step.
 */
import type { Measure, Row } from "../http/report.ts"
import { quantile, spread } from "../lib/statistics.ts"
import type { Databases } from "./databases.ts"
import { Program } from "./processes.ts"
import { clock, type StepEnd } from "./commands.ts"

export interface Plan {
  readonly rounds: number
  /** The number of running tasks, and the duration of their steps in milliseconds. */
  readonly tasks: number
  readonly stepDuration: number
  /** How long a new worker has to take its share of tasks, and how long a takeover may take, in milliseconds. */
  readonly settleTime: number
  readonly takeoverTime: number
}

const sleep = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** The end of a step and its worker. */
interface WorkerStep extends StepEnd {
  readonly worker: Program
}

/** The ends of the steps of each task. */
class StepLog {
  readonly #all = new Map<string, Array<WorkerStep>>()

  follow(worker: Program): void {
    worker.onStepEnd = (stepEnd) => {
      const steps = this.#all.get(stepEnd.task)
      if (steps === undefined) this.#all.set(stepEnd.task, [{ ...stepEnd, worker }])
      else steps.push({ ...stepEnd, worker })
    }
  }

  /** The pauses of the tasks that moved between workers since a time, in milliseconds. */
  pauses(since: number, stepDuration: number): Array<number> {
    const pauses: Array<number> = []
    for (const steps of this.#all.values()) {
      const sorted = steps.toSorted((a, b) => a.at - b.at)
      for (let index = 1; index < sorted.length; index++) {
        const before = sorted[index - 1]!
        const after = sorted[index]!
        // The new worker reports replayed steps again immediately. Only the first new step counts.
        if (after.at < since || before.worker === after.worker) continue
        const next = sorted.slice(index).find((candidate) => candidate.step > before.step)
        if (next !== undefined) pauses.push(Math.max(0, next.at - before.at - stepDuration))
      }
    }
    return pauses
  }
}

const kinds = ["gentle", "rude", "join"] as const
type Kind = (typeof kinds)[number]

const labels: Record<Kind, string> = {
  gentle: "one of three workers shuts down",
  rude: "one of three workers is killed",
  join: "a third worker joins"
}

const runRound = async (databases: Databases, plan: Plan, found: Record<Kind, Array<Array<number>>>): Promise<void> => {
  const at = await databases.create("postgres")
  const log = new StepLog()
  const programs: Array<Program> = []
  const worker = async (): Promise<Program> => {
    const { program } = await Program.startServer("postgres", at)
    log.follow(program)
    programs.push(program)
    return program
  }
  const observe = async (kind: Kind, act: () => Promise<unknown>): Promise<void> => {
    const since = clock()
    await act()
    await sleep(plan.takeoverTime)
    found[kind].push(log.pauses(since, plan.stepDuration))
  }
  try {
    const { program: server } = await Program.startServer("postgres", at, { work: false })
    programs.push(server)
    const first = await worker()
    const second = await worker()
    await sleep(plan.settleTime)
    await server.send({ do: "runSteps", tasks: plan.tasks, stepDuration: plan.stepDuration })
    await sleep(plan.settleTime)
    await observe("join", worker)
    await observe("gentle", () => first.close())
    await worker()
    await sleep(plan.takeoverTime)
    await observe("rude", () => second.kill())
  } finally {
    await Promise.all(programs.map((program) => program.kill()))
  }
}

/** Measures with a new database in each round. */
export const measure = async (databases: Databases, plan: Plan): Promise<Measure> => {
  const found: Record<Kind, Array<Array<number>>> = { gentle: [], rude: [], join: [] }
  for (let turn = 0; turn < plan.rounds; turn++) await runRound(databases, plan, found)
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
    title: `Pauses of ${plan.tasks} tasks with steps of ${plan.stepDuration} ms on PostgreSQL`,
    columns: [
      { key: "moved", title: "tasks moved", unit: "count" },
      { key: "p50", title: "p50 ms", unit: "count" },
      { key: "p95", title: "p95 ms", unit: "count" },
      { key: "max", title: "max ms", unit: "count" }
    ],
    rows: kinds.map(rowOf)
  }
}
