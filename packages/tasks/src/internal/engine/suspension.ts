/**
 * What a run waits for that may take long: answers, and times. When nothing else is left to do, the run is suspended, and costs no
 * memory until something of it comes.
 *
 * The engine lets the arrival of what a run awaits interrupt the run, steps and all. So what is waited for is only named to the
 * engine when the run is about to be suspended; while steps still run beside it, it is looked at from time to time.
 */
import type * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { WorkflowEngine, WorkflowInstance } from "effect/workflow/WorkflowEngine"
import type { History } from "./history.ts"

type Within = WorkflowEngine | WorkflowInstance

/** What is parked: a run. */
export interface Parkable {
  readonly host: { readonly pollInterval: number }
  readonly history: History
  readonly instance: WorkflowInstance["Service"]
  readonly context: Context.Context<Within>
  readonly scope: Scope.Scope
  /** Whether something runs beside its root, of which nothing may be known yet. */
  readonly forked: boolean
  /** Whether somebody else says when it ends, though all of it waits. */
  readonly lingers: boolean
  /** Whether something is being looked for that earlier runs may have left. */
  readonly finds: boolean
  /** Takes notice of who waits. */
  readonly meet: (fiber: Fiber.Fiber<unknown, unknown>) => void
  /** Ends it where it is. */
  readonly leave: Effect.Effect<never>
}

/** See the module's text. */
export interface Parking {
  /** Whether something waits. */
  readonly waiting: boolean
  /** Whether something has come to an end, and waits for what came before. */
  readonly due: boolean
  /** Something begins: what waits beside it is not put away. */
  readonly stir: () => void
  /** Something may have come: it is looked at now. */
  readonly poke: () => void
  /**
   * Waits until a look gives how the wait ends. What has come of several is told by rank, and the next one when what the one before has
   * led to waits as well, or has been told: so what has lost a race to it, and has come meanwhile, loses in each later run.
   */
  readonly wait: <A, E>(wait: Wait<A, E>) => Effect.Effect<A, E>
}

/** What is waited for. */
export interface Wait<A, E> {
  /** What it is in the history of the run. */
  readonly events: ReadonlyArray<string>
  /** The deferreds that tell when there is something to look at; none where it has come before. */
  readonly awaits: ReadonlyArray<string>
  readonly look: Effect.Effect<Effect.Effect<A, E> | undefined>
  /** Where it stands among those that have come. */
  readonly rank: Effect.Effect<bigint>
}

/** Milliseconds that the code between two steps may take, beside something that waits: then it is put away with that, and begins anew. */
export const between = 2000

/** What one fiber waits for. */
interface Parked extends Wait<unknown, unknown> {
  readonly end: Deferred.Deferred<unknown, unknown>
}

/** What has come, in its order. */
const inOrder = (come: ReadonlyArray<readonly [parked: Parked, end: Effect.Effect<unknown, unknown>]>) =>
  Effect.map(
    Effect.forEach(come, ([parked, end]) => Effect.map(parked.rank, (rank) => ({ parked, end, rank }))),
    (all) => all.toSorted((a, b) => a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0)
  )

/** The parking of a run. */
export const makeParking = (run: Parkable): Parking => {
  const all = new Set<Parked>()
  const stirred = Latch.makeUnsafe()
  const poked = Latch.makeUnsafe()
  let attended = false
  let due = false
  /** What the engine has been told of. */
  let told: ReadonlyArray<string> = []

  const tell = (): void => {
    const { awaitedDeferreds } = run.instance
    told = [...all].flatMap(({ awaits }) => awaits)
    for (const name of told) awaitedDeferreds.set(name, (awaitedDeferreds.get(name) ?? 0) + 1)
  }

  const untell = (): void => {
    const { awaitedDeferreds } = run.instance
    const names = told
    told = []
    for (const name of names) {
      const count = awaitedDeferreds.get(name) ?? 0
      if (count > 1) awaitedDeferreds.set(name, count - 1)
      else awaitedDeferreds.delete(name)
    }
  }

  /** What a run waits for that is suspended stays told. */
  const stir = (): void => {
    if (run.instance.suspended) return
    stirred.openUnsafe()
    untell()
  }

  const poke = (): void => {
    poked.openUnsafe()
    stir()
  }

  /**
   * Tells what has come: all that nothing else is expected before, or just the first, where nothing else goes on. `late`: what is
   * expected does not come, and the first is told.
   */
  const look = (quiet: boolean, late: boolean) =>
    Effect.gen(function*() {
      const come: Array<readonly [parked: Parked, end: Effect.Effect<unknown, unknown>]> = []
      for (const parked of all) {
        const end = yield* parked.look
        if (end !== undefined) come.push([parked, end])
      }
      if (come.length > 0 && run.forked) yield* run.history.read
      let some = false
      for (const { end, parked, rank } of yield* inOrder(come)) {
        if (late) run.history.skip(rank)
        if (run.history.expects(rank)) break
        yield* hops
        // It may have lost a race to the one before.
        if (!all.delete(parked)) continue
        some = true
        run.history.pass(parked.events)
        Deferred.doneUnsafe(parked.end, end)
        if (quiet || late) break
      }
      due = come.length > 0 && !some
      return come.length === 0 ? "nothing" : some ? "some" : "held"
    })

  /**
   * The fibers are children of the run's root, but for those that nobody waits for. The run is suspended before any of them goes: the
   * first one may end it, and then the engine may take it for interrupted, which nothing must change any more.
   */
  const suspend = Effect.suspend(() => {
    run.instance.suspended = true
    for (const { end } of all) Deferred.doneUnsafe(end, run.leave)
    return run.leave
  })

  /** Whether something begins soon: code between two steps takes its time, and is in no hurry to say so. */
  const begins = Effect.raceFirst(
    Effect.as(stirred.await, true),
    Effect.as(Effect.sleep(between), false)
  )

  const watch = Effect.gen(function*() {
    let late = false
    while (all.size > 0) {
      const quiet = yield* Effect.raceFirst(
        Effect.as(idle(run.instance.activityState), true),
        Effect.as(Effect.raceFirst(poked.await, Effect.sleep(run.host.pollInterval)), false)
      )
      stirred.closeUnsafe()
      poked.closeUnsafe()
      if (quiet) tell()
      const found = yield* look(quiet, late)
      late = false
      if (found === "held") {
        untell()
        late = !(yield* begins) && !run.finds
        continue
      }
      if (quiet && found === "nothing" && all.size > 0) {
        if (run.lingers) {
          untell()
          break
        }
        if (!(run.forked && (yield* begins))) return yield* suspend
      }
      untell()
    }
    attended = false
  })

  const attend = Effect.suspend(() => {
    if (attended) return Effect.void
    attended = true
    return Effect.asVoid(Effect.forkIn(Effect.setContext(watch, run.context), run.scope))
  })

  return {
    get waiting() {
      return all.size > 0
    },
    get due() {
      return due
    },
    stir,
    poke,
    wait: <A, E>(wait: Wait<A, E>) =>
      Effect.withFiber((fiber) => {
        run.meet(fiber)
        const end = Deferred.makeUnsafe<A, E>()
        const parked: Parked = { ...wait, end: end as Parked["end"] }
        all.add(parked)
        if (wait.awaits.length === 0) poke()
        else stir()
        return Effect.ensuring(
          Effect.andThen(attend, Deferred.await(end)),
          Effect.sync(() => {
            all.delete(parked)
            if (all.size === 0) due = false
            run.history.pass(wait.events)
            stir()
          })
        )
      })
  }
}

/** Who was told before has gone on, and has won, or cut others off, where that takes nothing but turns of the scheduler. */
export const hops = Effect.repeat(Effect.yieldNow, { times: 3 })

const hop = Effect.andThen(Effect.yieldNow, Effect.yieldNow)

/**
 * Nothing is held any more: two turns of the scheduler after who waits began to wait, so that what was ready to run has run, and has
 * begun to hold, or to wait as well. It can be interrupted, unlike the engine's own way to wait for that.
 */
const idle = (state: WorkflowInstance["Service"]["activityState"]): Effect.Effect<void> =>
  Effect.andThen(
    hop,
    Effect.suspend(() => state.count === 0 ? Effect.void : Effect.andThen(state.latch.await, idle(state)))
  )
