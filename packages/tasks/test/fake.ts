/**
 * An engine of tasks in memory, for the tests of what stands before it: one process, nothing durable, and every rule of the
 * `TaskEngine`'s contract that a client can see. A durable body runs once here; a plain one that asks too.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { diagnosis, isError } from "../src/internal/diagnosis.ts"
import { TaskExchange } from "../src/internal/exchange.ts"
import type { Handlers } from "@skein/tasks/TaskEngine"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import { TaskError } from "@skein/tasks/TaskError"
import { isFinal, type NewTask, type Outcome, type Question, type State } from "@skein/tasks/TaskState"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import * as PubSub from "effect/PubSub"
import * as Stream from "effect/Stream"

interface Row {
  state: State
  readonly args: JsonObject
  readonly limits: NewTask["limits"]
  readonly answers: Map<string, JsonObject>
  readonly waiting: Map<string, Deferred.Deferred<JsonObject>>
  readonly changes: PubSub.PubSub<State>
  fiber: Fiber.Fiber<void> | undefined
}

/** What a test may look at, and do, past the engine's interface. */
export interface Fake {
  readonly rows: ReadonlyMap<string, Row>
  /** How often the store was looked into, by the name of what did. */
  readonly looks: Array<string>
  /** Everything fails until it is taken back. */
  broken: TaskError | undefined
  /** What a submission waits for before it is known to be done. */
  slow: Effect.Effect<void> | undefined
  /** Forgets a task. */
  readonly forget: (id: string) => void
}

export class FakeTasks extends Context.Service<FakeTasks, Fake>()("test/FakeTasks") {}

const make = Effect.gen(function*() {
  const rows = new Map<string, Row>()
  const fibers = yield* FiberSet.make<void>()
  const services = yield* Effect.context<never>()
  let handlers: Handlers | undefined
  const fake = {
    rows,
    looks: [] as Array<string>,
    broken: undefined as TaskError | undefined,
    slow: undefined as Effect.Effect<void> | undefined,
    forget: (id: string) => void rows.delete(id)
  }

  const look = <A>(name: string, f: (now: number) => A): Effect.Effect<A, TaskError> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      fake.looks.push(name)
      return fake.broken === undefined ? Effect.sync(() => f(now)) : Effect.fail(fake.broken)
    })

  const alive = (id: string, now: number): Row | undefined => {
    const row = rows.get(id)
    return row === undefined || (row.state.ttl !== null && now >= row.state.createdAt + row.state.ttl) ? undefined : row
  }

  /** Terminal is final. */
  const change = (row: Row, now: number, to: Partial<State>): boolean => {
    if (isFinal(row.state)) return false
    row.state = { ...row.state, ...to, updatedAt: now, version: row.state.version + 1 }
    PubSub.publishUnsafe(row.changes, row.state)
    return true
  }
  const changing = (row: Row, to: (state: State) => Partial<State>): Effect.Effect<boolean> =>
    Effect.map(Clock.currentTimeMillis, (now) => change(row, now, to(row.state)))

  const ask = (row: Row, asked: { n: number }) => (method: string, params: JsonObject | undefined, key?: string) =>
    Effect.gen(function*() {
      const question: Question = { key: key ?? `q${asked.n++}`, method, params }
      const answered = row.answers.get(question.key)
      if (answered !== undefined) return answered
      const deferred = yield* Deferred.make<JsonObject>()
      row.waiting.set(question.key, deferred)
      yield* changing(row, ({ questions }) => ({ status: "input_required", questions: [...questions, question] }))
      return yield* Effect.onInterrupt(Deferred.await(deferred), () => withdraw(row, question.key))
    })

  const withdraw = (row: Row, key: string) =>
    changing(row, ({ questions }) => {
      const left = questions.filter((question) => question.key !== key)
      return { questions: left, status: left.length === 0 ? "working" : "input_required" }
    })

  const start = (row: Row): void => {
    const handler = handlers?.(row.state.tool)
    if (handler === undefined || row.fiber !== undefined || isFinal(row.state)) return
    const { caller, id, owner, pool, tool } = row.state
    const asking = ask(row, { n: 0 })
    const undos: Array<() => Effect.Effect<unknown>> = []
    const steps = new Map<string, unknown>()
    const current = {
      id,
      say: (message: string) => Effect.asVoid(changing(row, () => ({ message }))),
      step: (name: string, _options: unknown, execute: (key: string) => Effect.Effect<unknown>) =>
        steps.has(name)
          ? Effect.succeed(steps.get(name))
          : Effect.tap(execute(`${id}/${name}`), (value) => Effect.sync(() => steps.set(name, value))),
      sleep: (_name: string, duration: Parameters<typeof Effect.sleep>[0]) => Effect.sleep(duration),
      compensate: (undo: () => Effect.Effect<unknown>) => Effect.sync(() => void undos.push(undo))
    }
    const exchange = new TaskExchange(
      { id, tool, pool, owner, args: row.args, caller, status: "working", said: 0 } as never,
      {
        current: current as never,
        ask: (method, params, options) => asking(method, params, options?.key),
        progress: (progress) => Effect.asVoid(changing(row, () => ({ progress })))
      }
    )
    const end = (exit: Exit.Exit<Outcome>): Effect.Effect<unknown> =>
      Exit.isSuccess(exit)
        ? changing(row, () => ({
          status: exit.value._tag === "Result" ? "completed" : "failed",
          message: diagnosis(exit.value) ?? row.state.message,
          isError: isError(exit.value),
          outcome: exit.value,
          questions: []
        }))
        : Effect.forEach(row.state.status === "cancelled" ? undos.toReversed() : [], (undo) => undo())
    row.fiber = Effect.runForkWith(services)(Effect.asVoid(Effect.onExit(handler.run(exchange), end)))
    FiberSet.addUnsafe(fibers, row.fiber)
  }
  const counted = (task: NewTask, now: number): boolean => {
    const all = [...rows.keys()].map((id) => alive(id, now)?.state).filter((state) => state !== undefined)
    const fits = (of: ReadonlyArray<State>, { live, retained }: NewTask["limits"]["all"]): boolean =>
      of.length < (retained ?? Infinity) && of.filter((state) => !isFinal(state)).length < (live ?? Infinity)
    return fits(all, task.limits.all) && fits(all.filter(({ tool }) => tool === task.tool), task.limits.tool) &&
      fits(all.filter(({ owner }) => owner === task.owner), task.limits.owner)
  }

  const engine = TaskEngine.of({
    submit: (task) =>
      Effect.gen(function*() {
        const now = yield* Clock.currentTimeMillis
        const fits = yield* look("submit", () => counted(task, now))
        if (!fits) return yield* new TaskError({ reason: "Limit", message: "There are too many" })
        const { args, limits, ...rest } = task
        const id = Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString("base64url")
        const state: State = {
          ...rest,
          id,
          status: "working",
          message: undefined,
          progress: undefined,
          createdAt: now,
          updatedAt: now,
          version: 0,
          questions: [],
          isError: false,
          outcome: undefined
        }
        const row: Row = {
          state,
          // What is kept is JSON.
          args: JSON.parse(JSON.stringify(args)),
          limits,
          answers: new Map(),
          waiting: new Map(),
          changes: yield* PubSub.unbounded<State>(),
          fiber: undefined
        }
        rows.set(id, row)
        start(row)
        yield* fake.slow ?? Effect.void
        return state
      }),
    get: (id) => look("get", (now) => alive(id, now)?.state),
    list: (owners, { after, limit }) =>
      look("list", (now) =>
        [...rows.keys()].map((id) => alive(id, now)?.state)
          .filter((state) => state !== undefined && owners.includes(state.owner))
          .sort((a, b) => b!.createdAt - a!.createdAt || (a!.id < b!.id ? 1 : -1))
          .filter((state) =>
            after === undefined || state!.createdAt < after.createdAt ||
            (state!.createdAt === after.createdAt && state!.id < after.id)
          )
          .slice(0, limit)
          .map((state) => ({ ...state!, questions: [], outcome: undefined }))),
    cancel: (id, message) =>
      look("cancel", (now) => {
        const row = alive(id, now)
        if (row === undefined || !change(row, now, { status: "cancelled", message, questions: [] })) return false
        row.fiber?.interruptUnsafe()
        return true
      }),
    answer: (id, key, answer) =>
      look("answer", (now) => {
        const row = alive(id, now)
        const waiting = row?.waiting.get(key)
        if (row === undefined || waiting === undefined || !isObject(answer)) return false
        row.waiting.delete(key)
        row.answers.set(key, answer)
        const questions = row.state.questions.filter((question) => question.key !== key)
        if (!change(row, now, { questions, status: questions.length === 0 ? "working" : "input_required" })) {
          return false
        }
        Deferred.doneUnsafe(waiting, Effect.succeed(answer))
        return true
      }),
    forget: (id) =>
      look("forget", (now) => {
        const row = alive(id, now)
        if (row !== undefined && isFinal(row.state)) {
          row.state = { ...row.state, ttl: now + 10_000 - row.state.createdAt }
        }
      }),
    watch: (id) =>
      Stream.unwrap(Effect.gen(function*() {
        const now = yield* Clock.currentTimeMillis
        const row = yield* look("watch", () => alive(id, now))
        if (row === undefined) return Stream.empty
        const changes = yield* PubSub.subscribe(row.changes)
        return Stream.concat(Stream.succeed(row.state), Stream.fromSubscription(changes)).pipe(
          Stream.takeUntil(isFinal)
        )
      })),
    work: (given) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          handlers = given
          for (const row of rows.values()) start(row)
        }),
        () => {
          handlers = undefined
          return FiberSet.clear(fibers)
        }
      )
  })
  return Context.add(Context.make(TaskEngine, engine), FakeTasks, fake)
})

/** The engine, and what a test may do with it. */
export const layer: Layer.Layer<TaskEngine | FakeTasks> = Layer.effectContext(make)
