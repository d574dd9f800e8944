/** Runs the targets in turn, each with its own seed for each run. */
import * as Effect from "effect/Effect"
import * as Random from "../../packages/protocol/test/oracle/Random.ts"
import { cliTarget } from "./cliTarget.ts"
import { clientTarget } from "./clientTarget.ts"
import { codecTarget } from "./codecTarget.ts"
import { framesTarget } from "./framesTarget.ts"
import { httpTarget } from "./httpTarget.ts"
import { serverTarget } from "./serverTarget.ts"
import type { Target } from "./target.ts"
import { wireTarget } from "./wireTarget.ts"

export const targets: ReadonlyArray<Target> = [
  codecTarget,
  serverTarget,
  clientTarget,
  cliTarget,
  framesTarget,
  wireTarget,
  httpTarget
]

/** The targets and runs of one call. */
export interface Plan {
  readonly seed: number
  /** One target, by its name: all of them by default. */
  readonly only?: string | undefined
  /** One run of the target: all of them by default. */
  readonly at?: number | undefined
  /** How many runs of each target: as many as there is time for by default. */
  readonly runs?: number | undefined
  readonly milliseconds: number
  readonly print: (line: string) => void
}

// The most milliseconds that one run may take. A process of low priority on a busy machine can stand still for 20 seconds.
const deadline = 120_000

/** Returns the number of faults. */
export const fuzz = async ({ at, milliseconds, only, print, runs = Infinity, seed }: Plan): Promise<number> => {
  const chosen = targets.filter(({ name }) => only === undefined || name === only)
  if (chosen.length === 0) throw new Error(`no target ${only}: there are ${targets.map(({ name }) => name).join(", ")}`)
  const counts = new Map(chosen.map(({ name }) => [name, 0]))
  const seen = new Map<string, number>()
  let faults = 0
  const report = (target: string, run: number) => (fault: string): void => {
    faults++
    // Each kind of fault is printed three times, then counted.
    const kind = `${target} ${fault.replace(/[0-9a-f]{8}-[0-9a-f-]{27}|\d+/g, "#").slice(0, 160)}`
    const count = (seen.get(kind) ?? 0) + 1
    seen.set(kind, count)
    if (count <= 3) print(`${target} --at ${run}: ${fault}`)
  }
  const outside = (error: unknown): void =>
    report("process", 0)(`uncaught: ${String((error as Error)?.stack ?? error)}`)
  process.on("uncaughtException", outside)
  process.on("unhandledRejection", outside)
  const one = ({ name, run }: Target, index: number): Effect.Effect<void> => {
    const reported = report(name, index)
    return run(Random.make(Random.hash(`${seed} ${name} ${index}`)), reported).pipe(
      Effect.timeoutOrElse({
        duration: deadline,
        orElse: () => Effect.sync(() => reported(`a run took longer than ${deadline} ms`))
      })
    )
  }
  const until = Date.now() + milliseconds
  const slice = (target: Target): Effect.Effect<void> => {
    const sliceEnd = Math.min(Date.now() + 2_000, until)
    return Effect.gen(function*() {
      while (Date.now() < sliceEnd && counts.get(target.name)! < runs) {
        const index = counts.get(target.name)!
        counts.set(target.name, index + 1)
        yield* one(target, index)
      }
    })
  }
  try {
    if (at !== undefined) await Effect.runPromise(one(chosen[0]!, at))
    let announced = Date.now()
    while (at === undefined && Date.now() < until && chosen.some(({ name }) => counts.get(name)! < runs)) {
      for (const target of chosen) await Effect.runPromise(slice(target))
      if (Date.now() - announced < 60_000) continue
      announced = Date.now()
      print(`${new Date().toISOString()} ${JSON.stringify(Object.fromEntries(counts))} faults ${faults}`)
    }
    for (const { close = Effect.void } of chosen) await Effect.runPromise(close)
  } finally {
    process.off("uncaughtException", outside)
    process.off("unhandledRejection", outside)
  }
  print(`seed ${seed} ${JSON.stringify(Object.fromEntries(counts))} faults ${faults}`)
  for (const [kind, count] of seen) print(`${count} × ${kind}`)
  return faults
}
