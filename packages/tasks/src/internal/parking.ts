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
import * as Workflow from "effect/workflow/Workflow"
import type { WorkflowEngine, WorkflowInstance } from "effect/workflow/WorkflowEngine"

type Within = WorkflowEngine | WorkflowInstance

/** What is parked: a run. */
export interface Parkable {
  readonly host: { readonly pollInterval: number }
  readonly instance: WorkflowInstance["Service"]
  readonly context: Context.Context<Within>
  readonly scope: Scope.Scope
  /** Whether something runs beside its root, of which nothing may be known yet. */
  readonly forked: boolean
  /** Whether somebody else says when it ends, though all of it waits. */
  readonly lingers: boolean
  /** Takes notice of who waits. */
  readonly meet: (fiber: Fiber.Fiber<unknown, unknown>) => void
  /** Ends it where it is. */
  readonly leave: Effect.Effect<never>
}

/** See the module's text. */
export interface Parking {
  /** Whether something waits. */
  readonly waiting: boolean
  /** Something begins: what waits beside it is not put away. */
  readonly stir: () => void
  /**
   * Waits until a look gives how the wait ends. `names` are the deferreds that tell when there is something to look at. `rank`: what
   * has come of several is told in this order, and the next one when what the one before has led to waits as well. So what has lost a
   * race to it, and has come meanwhile, loses in each later run.
   */
  readonly wait: <A, E>(
    names: ReadonlyArray<string>,
    look: Effect.Effect<Effect.Effect<A, E> | undefined>,
    rank?: Effect.Effect<bigint>
  ) => Effect.Effect<A, E>
}

/** Milliseconds that the code between two steps may take, beside something that waits: then it is put away with that, and begins anew. */
export const between = 2000

/** What one fiber waits for. */
interface Parked {
  readonly names: ReadonlyArray<string>
  readonly look: Effect.Effect<Effect.Effect<unknown, unknown> | undefined>
  readonly rank: Effect.Effect<bigint> | undefined
  readonly end: Deferred.Deferred<unknown, unknown>
}

const inOrder = <A extends readonly [Parked, ...ReadonlyArray<unknown>]>(ranked: ReadonlyArray<A>) =>
  Effect.map(
    Effect.forEach(ranked, (each) => Effect.map(each[0].rank!, (rank) => ({ each, rank }))),
    (all) => all.toSorted((a, b) => a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0).map(({ each }) => each)
  )

/** The parking of a run. */
export const makeParking = (run: Parkable): Parking => {
  const all = new Set<Parked>()
  const stirred = Latch.makeUnsafe()
  let attended = false
  /** What the engine has been told of. */
  let told: ReadonlyArray<string> = []

  const tell = (): void => {
    const { awaitedDeferreds } = run.instance
    told = [...all].flatMap(({ names }) => names)
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

  const tellEnd = (parked: Parked, end: Effect.Effect<unknown, unknown>): void => {
    all.delete(parked)
    Deferred.doneUnsafe(parked.end, end)
  }

  /** What a run waits for that is suspended stays told. */
  const stir = (): void => {
    if (run.instance.suspended) return
    stirred.openUnsafe()
    untell()
  }

  /** Whether something has come. */
  const look = (quiet: boolean) =>
    Effect.gen(function*() {
      let come = false
      let ranked: Array<readonly [parked: Parked, end: Effect.Effect<unknown, unknown>]> = []
      for (const parked of all) {
        const end = yield* parked.look
        if (end === undefined) continue
        if (parked.rank === undefined) tellEnd(parked, end)
        else ranked.push([parked, end])
        come = true
      }
      if (ranked.length > 1) ranked = yield* inOrder(ranked)
      // While something else is busy nobody knows when it waits: then they are told all at once.
      for (const [parked, end] of quiet ? ranked.slice(0, 1) : ranked) tellEnd(parked, end)
      return come
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

  const watch = Effect.gen(function*() {
    while (all.size > 0) {
      const quiet = yield* Effect.raceFirst(
        Effect.as(idle, true),
        Effect.as(Effect.sleep(run.host.pollInterval), false)
      )
      stirred.closeUnsafe()
      if (quiet) tell()
      const come = yield* look(quiet)
      if (quiet && !come && all.size > 0) {
        if (run.lingers) {
          untell()
          break
        }
        // Code between two steps takes its time, and is in no hurry to say so.
        const begins = run.forked && (yield* Effect.raceFirst(
          Effect.as(stirred.await, true),
          Effect.as(Effect.sleep(between), false)
        ))
        if (!begins) return yield* suspend
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
    stir,
    wait: <A, E>(
      names: ReadonlyArray<string>,
      look: Effect.Effect<Effect.Effect<A, E> | undefined>,
      rank?: Effect.Effect<bigint>
    ) =>
      Effect.withFiber((fiber) => {
        run.meet(fiber)
        const end = Deferred.makeUnsafe<A, E>()
        const parked: Parked = { names, look, rank, end: end as Parked["end"] }
        all.add(parked)
        stir()
        return Effect.ensuring(
          Effect.andThen(attend, Deferred.await(end)),
          Effect.sync(() => {
            all.delete(parked)
            stir()
          })
        )
      })
  }
}

/**
 * Nothing is held any more: two hops of the scheduler after who waits began to wait, so that what was ready to run has run, and
 * has begun to hold, or to wait as well.
 */
const idle: Effect.Effect<void, never, Within> = Effect.yieldNow.pipe(
  Effect.andThen(Effect.yieldNow),
  Effect.andThen(Workflow.wrapActivityResult(Effect.void, () => true))
)
