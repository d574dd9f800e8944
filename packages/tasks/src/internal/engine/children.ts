/**
 * The children of a running task: they start once, by their names in their parent, and their ends are events of its log.
 *
 * A child that ends signals its parent. A group of children has one event, its end: what it has started is known from
 * the store, so that a run that only starts further children reads and writes no log.
 */
import * as Effect from "effect/Effect"
import type { ChildGroup } from "../../CurrentTask.ts"
import type { TaskError } from "../../TaskError.ts"
import type { NewTask } from "../../TaskState.ts"
import { endOf, errorOf, notStartedOf, type TaskEnd } from "../base/taskEnd.ts"
import type { ChildLink } from "../store/childStore.ts"
import type { Store } from "../store/store.ts"
import { awaitStore } from "./engineContext.ts"
import type { NewEvent, Wait } from "./observations.ts"
import { claimName, misplacedInStep } from "./placement.ts"
import type { Run } from "./run.ts"
import type { EventKey } from "./taskLog.ts"

/** The position of a child that is not in a group. */
const single = -1

/** Children that are cancelled, or whose ends are read, together. */
const pageSize = 500

/** Milliseconds until a group without live children tries again to start one, at a limit on tasks. */
const limitRetryMs = 1000

/** Cancels the children of a task that have not ended, of one group or of all, except for detached ones. */
export const cancelChildren = (store: Store, parent: string, name?: string): Effect.Effect<void> =>
  Effect.flatMap(
    awaitStore(store.children.findLive(parent, name, pageSize)),
    (ids) =>
      ids.length === 0 ? Effect.void : Effect.andThen(
        Effect.forEach(ids, (id) =>
          awaitStore(
            store.finish(id, { status: "cancelled", statusMessage: "The parent task no longer waits for it" })
          ), { discard: true }),
        cancelChildren(store, parent, name)
      )
  )

/** The name of a child in the store. Children of a task that has begun again (`Task.continueWith`) have other names. */
const storedName = ({ log: { continuation } }: Run, name: string): string =>
  continuation === 0 ? name : `${name}@${continuation}`

/** Runs a part that must not be in a step or in a compensation. */
const placed = <A, E>(run: Run, part: string, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.withFiber((fiber) => {
    const problem = misplacedInStep(fiber, part)
    if (problem !== undefined) return problem
    return run.undoReason === undefined ? effect : Effect.die(new Error(`${part} is not allowed in a compensation`))
  })

/** Starts a child, and returns its id, or why it did not start. The run ends if its task has ended. */
const startChild = (
  run: Run,
  place: Pick<ChildLink, "name" | "item" | "isDetached">,
  make: Effect.Effect<NewTask, TaskError>
): Effect.Effect<string | TaskEnd> => {
  const { caller: { principal, traceparent }, id, owner } = run.task
  run.hasChildren = true
  const started = Effect.flatMap(make, (task) =>
    run.engine.startChild({ ...place, parent: id }, {
      ...task,
      owner,
      caller: { ...task.caller, principal, ...(traceparent === undefined ? undefined : { traceparent }) }
    }))
  const noted = Effect.catch(started, (error): Effect.Effect<TaskEnd, TaskError> => {
    const end = notStartedOf(error)
    return end === undefined ? Effect.fail(error) : Effect.succeed(end)
  })
  return Effect.flatMap(
    awaitStore(noted),
    (child) => child === undefined ? Effect.andThen(run.refresh, run.lose) : Effect.succeed(child)
  )
}

/** Implements `Task.start`. */
export const start = (
  run: Run,
  name: string,
  make: Effect.Effect<NewTask, TaskError>,
  isDetached: boolean
): Effect.Effect<string, TaskError> => {
  const { engine: { store }, task } = run
  const associatedData = `${task.id}/start/1/${name}`
  const encode = (recorded: object) => awaitStore(store.encrypt(JSON.stringify(recorded), associatedData))
  const decode = (text: string): Effect.Effect<string | TaskEnd> =>
    Effect.flatMap(awaitStore(store.decrypt(text, associatedData)), (text) => {
      const recorded = JSON.parse(text) as { readonly id: string } | TaskEnd | { readonly d: string }
      return "d" in recorded
        ? Effect.die(new Error(recorded.d))
        : Effect.succeed("id" in recorded ? recorded.id : recorded)
    })
  const options = { kind: "start", name, attempt: 1, decode, encodeDefect: (d: string) => encode({ d }) } as const
  const started = Effect.suspend(() =>
    run.record(options, () =>
      Effect.flatMap(
        startChild(run, { name: storedName(run, name), item: single, isDetached }, make),
        (child) =>
          Effect.map(encode(typeof child === "string" ? { id: child } : child), (text) => ({ text, failed: false }))
      ))
  )
  return placed(
    run,
    `Task.start of "${name}"`,
    Effect.suspend(() => {
      run.hasChildren = true
      return claimName(run, "child", name) ?? Effect.flatMap(
        started,
        (child) =>
          typeof child === "string"
            ? Effect.succeed(child)
            : Effect.fail(errorOf(child as Extract<TaskEnd, { readonly failure: unknown }>))
      )
    })
  )
}

/** The value of an event, or when to look for it again without a signal, in milliseconds of Unix time. */
type Found = { readonly value: unknown } | { readonly lookAt: number }

/**
 * Waits for an event of children. `check` looks for it in the store after each signal.
 */
const awaitChildren = <A, E>(
  run: Run,
  event: EventKey,
  check: Effect.Effect<Found>,
  next: (value: A) => Effect.Effect<A, E>
): Effect.Effect<A, E> => {
  const { engine: { store }, execution, log, task } = run
  const associatedData = `${task.id}/${event.kind}/${event.attempt}/${event.name}`
  let seen = -1
  let lookAt = Infinity
  const wait: Wait<A, E> = {
    events: [event],
    dueAt: () => seen < execution.signals ? 0 : lookAt,
    arrive: Effect.suspend(() => {
      const { signals } = execution
      return Effect.flatMap(check, (found): Effect.Effect<NewEvent | undefined> => {
        if ("value" in found) {
          const encrypted = awaitStore(store.encrypt(JSON.stringify(found.value), associatedData))
          return Effect.map(encrypted, (value) => ({ ...event, value }))
        }
        seen = signals
        lookAt = found.lookAt
        return Effect.undefined
      })
    }),
    next: () =>
      Effect.flatMap(
        run.preventSuspension(awaitStore(store.decrypt(log.find(event)?.value ?? "", associatedData))),
        (text) => next(JSON.parse(text) as A)
      )
  }
  return log.find(event) === undefined ? run.startNew(event, run.observe(wait)) : run.observe(wait)
}

/** Implements `Task.join`. */
export const join = (run: Run, name: string): Effect.Effect<TaskEnd> =>
  placed(
    run,
    `Task.join of "${name}"`,
    Effect.suspend(() => {
      const { engine: { store }, task: { id } } = run
      const attempt = (run.counts.get(`join/${name}`) ?? 0) + 1
      run.counts.set(`join/${name}`, attempt)
      const stored = storedName(run, name)
      let isKnown = false
      const check = Effect.flatMap(run.endedChildren, (ended): Effect.Effect<Found> => {
        if (isKnown && !ended.has(stored)) return Effect.succeed({ lookAt: Infinity })
        return Effect.map(awaitStore(store.children.states(id, stored, single, 1)), (states): Found => {
          isKnown = true
          // A task that runs again (`TaskAdmin.rerun`) does not have the children of the first one.
          return ended.has(stored) || !states.has(single)
            ? { value: endOf(states.get(single)) }
            : { lookAt: Infinity }
        })
      })
      return awaitChildren<TaskEnd, never>(run, { kind: "join", name, attempt }, check, Effect.succeed)
    })
  )

/** The recorded end of a group. */
type GroupEnd = { readonly ends: ReadonlyArray<TaskEnd> } | { readonly failed: TaskEnd }

/** Implements `Task.forEach`. */
export const forEach = (
  run: Run,
  name: string,
  group: ChildGroup
): Effect.Effect<ReadonlyArray<TaskEnd>, TaskError> =>
  placed(
    run,
    `Task.forEach of "${name}"`,
    Effect.suspend((): Effect.Effect<ReadonlyArray<TaskEnd>, TaskError> => {
      run.hasChildren = true
      const problem = claimName(run, "child", name)
      if (problem !== undefined) return problem
      const { engine: { store }, log, task: { id } } = run
      const event: EventKey = { kind: "join", name, attempt: 1 }
      const stored = storedName(run, name)
      const cancelled = Effect.suspend(() => cancelChildren(store, id, stored))
      const waited = awaitChildren<GroupEnd, never>(
        run,
        event,
        checkGroup(run, stored, group),
        (end) => "failed" in end && !run.isCollecting ? Effect.as(cancelled, end) : Effect.succeed(end)
      )
      const checked = log.find(event) !== undefined || run.isCollecting
        ? waited
        : Effect.flatMap(
          run.preventSuspension(awaitStore(store.children.progress(id, stored))),
          ({ started }) => started === 0 ? Effect.andThen(group.check, waited) : waited
        )
      return Effect.map(
        // The results of a group that has lost a race are not read.
        Effect.onInterrupt(checked, () => run.isEnding || run.isCollecting ? Effect.void : cancelled),
        (end) => "failed" in end ? [end.failed] : end.ends
      )
    })
  )

/** Starts the next children of a group, as far as its concurrency allows, and looks for its end. */
const checkGroup = (run: Run, name: string, { concurrency, count, failsFast, make }: ChildGroup) => {
  const { engine: { store }, task: { id } } = run
  /** The children that could not be prepared. */
  const notStarted = new Map<number, TaskEnd>()
  let hasReported = false
  const endsFrom = Effect.fnUntraced(function*(from: number, limit: number) {
    const states = yield* awaitStore(store.children.states(id, name, from, limit))
    return (item: number): TaskEnd => states.has(item) ? endOf(states.get(item)) : notStarted.get(item) ?? unprepared
  })
  return Effect.gen(function*(): Effect.fn.Return<Found> {
    const progress = yield* awaitStore(store.children.progress(id, name))
    let { live } = progress
    if (failsFast && progress.failed !== undefined) {
      return { value: { failed: (yield* endsFrom(progress.failed, 1))(progress.failed) } satisfies GroupEnd }
    }
    let next = progress.started
    for (; next < count && live < concurrency; next++) {
      if (notStarted.has(next)) continue
      const child = yield* startChild(run, { name, item: next, isDetached: false }, make(next))
      if (typeof child === "string") live++
      else if ("failure" in child && child.failure === "LimitExceeded") {
        if (!hasReported) yield* Effect.logWarning(`Task.forEach waits at a limit on tasks: ${child.message}`)
        hasReported = true
        // The end of a child signals the parent.
        return { lookAt: live > 0 ? Infinity : (yield* run.now) + limitRetryMs }
      } else {
        if (failsFast) return { value: { failed: child } satisfies GroupEnd }
        notStarted.set(next, child)
      }
    }
    if (next < count || live > 0) return { lookAt: Infinity }
    const ends: Array<TaskEnd> = []
    while (ends.length < count) {
      const from = ends.length
      const endAt = yield* endsFrom(from, pageSize)
      for (let item = from; item < Math.min(from + pageSize, count); item++) ends.push(endAt(item))
    }
    return { value: { ends } satisfies GroupEnd }
  })
}

const unprepared: TaskEnd = { failure: "NotStarted", message: "the task was not started: its preparation failed" }
