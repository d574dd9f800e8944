/**
 * A task engine in memory for the tests of the protocol layer: it follows every rule of the `TaskEngine` that a
 * client can observe, and is not durable. It runs a handler once and compensates nothing; a test can end, ask and
 * change tasks directly.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { type Handlers, TaskEngine } from "@skein/tasks/TaskEngine"
import { LimitExceeded, TaskError } from "@skein/tasks/TaskError"
import {
  type CountLimits,
  isFinal,
  type NewTask,
  type Outcome,
  type Question,
  type State
} from "@skein/tasks/TaskState"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import { failureMessage, isErrorResult } from "../src/internal/base/text.ts"
import { TaskRequestContext } from "../src/internal/engine/taskRequest.ts"

interface Row {
  state: State
  readonly args: JsonObject
  readonly limits: NewTask["limits"]
  readonly client: string | undefined
  /** Every status that the task has had, in order. */
  readonly history: Array<State["status"]>
  readonly waiting: Map<string, Deferred.Deferred<JsonObject>>
  readonly watchers: Set<() => void>
  fiber: Fiber.Fiber<void> | undefined
}

/** The engine that tests control. */
export class Fake {
  readonly rows = new Map<string, Row>()
  /** How often it was read, by the name of the operation. */
  readonly looks: Array<string> = []
  /** The answers that were stored. */
  readonly answered: Array<readonly [key: string, answer: JsonObject]> = []
  /** How many fibers watch a task now. */
  watching = 0
  /** Runs no handlers: the test performs their operations. */
  manual = false
  /** All operations fail until this is unset. */
  broken: TaskError | undefined = undefined
  /** A submission waits for this before it returns. */
  submitting: Effect.Effect<void> = Effect.void
  /** An answer waits for this before it is stored. */
  answering: Effect.Effect<void, TaskError> = Effect.void

  #handlers: Handlers | undefined = undefined
  readonly #fibers: FiberSet.FiberSet<void>
  readonly #clock: Clock.Clock
  readonly #services: Context.Context<never>

  constructor(fibers: FiberSet.FiberSet<void>, clock: Clock.Clock, services: Context.Context<never>) {
    this.#fibers = fibers
    this.#clock = clock
    this.#services = services
  }

  get #now(): number {
    return this.#clock.currentTimeMillisUnsafe()
  }

  /** A task that has not expired. */
  find(id: string): Row | undefined {
    const row = this.rows.get(id)
    if (row === undefined || row.state.ttlMs === null || this.#now < row.state.createdAt + row.state.ttlMs) return row
    this.forget(id)
    return undefined
  }

  /** Deletes a task, ended or not. Its watchers end; its handler continues without effect. */
  forget(id: string): void {
    const row = this.rows.get(id)
    this.rows.delete(id)
    for (const watcher of row?.watchers ?? []) watcher()
  }

  /** A terminal status never changes. */
  change(id: string, to: Partial<State>): boolean {
    const row = this.find(id)
    if (row === undefined || isFinal(row.state)) return false
    const state = { ...row.state, ...to, version: row.state.version + 1, updatedAt: this.#now }
    row.state = isFinal(state) ? { ...state, questions: [] } : state
    row.history.push(state.status)
    for (const watcher of row.watchers) watcher()
    return true
  }

  end(id: string, outcome: Outcome): boolean {
    const message = failureMessage(outcome)
    return this.change(id, {
      status: outcome._tag === "Result" ? "completed" : "failed",
      isError: isErrorResult(outcome),
      outcome,
      ...(message === undefined ? undefined : { statusMessage: message })
    })
  }

  ask(id: string, question: Question): Deferred.Deferred<JsonObject> {
    const { state, waiting } = this.find(id)!
    const answer = Deferred.makeUnsafe<JsonObject>()
    waiting.set(question.key, answer)
    this.change(id, { status: "input_required", questions: [...state.questions, question] })
    return answer
  }

  withdraw(id: string, key: string): boolean {
    const open = this.find(id)?.state.questions ?? []
    const questions = open.filter((question) => question.key !== key)
    if (questions.length === open.length) return false
    return this.change(id, { questions, status: questions.length === 0 ? "working" : "input_required" })
  }

  /** The first answer counts. */
  answer(id: string, key: string, answer: JsonObject): boolean {
    if (!isObject(answer) || !this.withdraw(id, key)) return false
    this.answered.push([key, answer])
    Deferred.doneUnsafe(this.find(id)!.waiting.get(key)!, Effect.succeed(answer))
    return true
  }

  #submit(task: NewTask): Effect.Effect<State, TaskError> {
    if (!this.#fits(task)) {
      return Effect.fail(new TaskError({ reason: new LimitExceeded({ message: "There are too many" }) }))
    }
    const { args, client, limits, ...rest } = task
    const id = Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString("base64url")
    const state: State = {
      ...rest,
      id,
      status: "working",
      statusMessage: undefined,
      progress: undefined,
      createdAt: this.#now,
      updatedAt: this.#now,
      version: 0,
      questions: [],
      isError: false,
      outcome: undefined
    }
    const row: Row = {
      state,
      // Stored values are JSON.
      args: JSON.parse(JSON.stringify(args)),
      limits,
      client,
      history: ["working"],
      waiting: new Map(),
      watchers: new Set(),
      fiber: undefined
    }
    this.rows.set(id, row)
    this.#start(row)
    return Effect.as(this.submitting, state)
  }

  #fits({ client, limits, owner, tool }: NewTask): boolean {
    const all = this.#alive()
    const fits = (of: ReadonlyArray<State>, { live = Infinity, retained = Infinity }: CountLimits): boolean =>
      of.length < retained && of.filter((state) => !isFinal(state)).length < live
    return fits(all, limits.all) && fits(all.filter((state) => state.tool === tool), limits.tool) &&
      fits(all.filter((state) => state.owner === owner && this.find(state.id)?.client === client), limits.client)
  }

  #alive(): ReadonlyArray<State> {
    return [...this.rows.keys()].flatMap((id) => this.find(id)?.state ?? [])
  }

  #start(row: Row): void {
    const handler = this.manual || row.fiber !== undefined || isFinal(row.state)
      ? undefined
      : this.#handlers?.(row.state.tool)
    if (handler === undefined) return
    const { id } = row.state
    const run = Effect.flatMap(Effect.yieldNow, () => handler.run(this.#request(row)))
    // In a context of its own: the submitting fiber may have ended when the handler continues.
    row.fiber = Effect.runForkWith(this.#services)(Effect.map(run, (outcome) => void this.end(id, outcome)))
    FiberSet.addUnsafe(this.#fibers, row.fiber)
  }

  #request({ args, state }: Row): TaskRequestContext {
    const { id } = state
    let asked = 0
    return TaskRequestContext.make({ ...state, args, statusMessageCount: 0, waitsForWorker: false }, {
      current: {
        id,
        setStatusMessage: (message) => Effect.sync(() => void this.change(id, { statusMessage: message })),
        label: () => Effect.void,
        emit: () => Effect.die("not in the fake"),
        step: (name, _options, execute) => execute(`${id}/${name}`),
        heartbeat: () => Effect.void,
        lastHeartbeat: Effect.undefined,
        sleep: (_name, duration) => Effect.sleep(duration),
        awaitEvent: () => Effect.die("not in the fake"),
        compensate: () => Effect.void,
        patched: () => Effect.succeed(true),
        continueWith: () => Effect.die("not in the fake"),
        nonCancellable: (_name, effect) => effect,
        branch: (_name, effect) => Effect.succeed({ body: effect, cancel: Effect.die("not in the fake") }),
        query: () => Effect.void,
        start: () => Effect.die("not in the fake"),
        join: () => Effect.die("not in the fake"),
        forEach: () => Effect.die("not in the fake")
      },
      ask: (method, params, options) =>
        Effect.suspend(() => {
          const key = options?.key ?? `q${++asked}`
          return Effect.onInterrupt(
            Deferred.await(this.ask(id, { key, method, params })),
            () => Effect.sync(() => this.withdraw(id, key))
          )
        }),
      progress: (progress) => Effect.sync(() => void this.change(id, { progress }))
    })
  }

  /** The current state of a task, and the latest state after each change, until the task ends. */
  #watch(id: string): Stream.Stream<State, TaskError> {
    return Stream.unwrap(Effect.gen({ self: this }, function*() {
      const row = yield* this.#look("watch", () => this.find(id))
      if (row === undefined) return Stream.empty
      const changes = yield* Queue.sliding<void>(1)
      const watcher = (): void => void Queue.offerUnsafe(changes, undefined)
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          this.watching++
          row.watchers.add(watcher)
        }),
        () =>
          Effect.sync(() => {
            this.watching--
            row.watchers.delete(watcher)
          })
      )
      watcher()
      return Stream.fromQueue(changes).pipe(
        Stream.map(() => this.find(id)?.state),
        Stream.takeUntil((state) => state === undefined || isFinal(state)),
        Stream.filter((state) => state !== undefined)
      )
    }))
  }

  #look<A>(name: string, f: () => A): Effect.Effect<A, TaskError> {
    return Effect.suspend(() => {
      this.looks.push(name)
      return this.broken === undefined ? Effect.sync(f) : Effect.fail(this.broken)
    })
  }

  readonly service: TaskEngine["Service"] = {
    submit: (task) => Effect.flatten(this.#look("submit", () => this.#submit(task))),
    get: (id) => this.#look("get", () => this.find(id)?.state),
    list: (owners, { after, limit }) =>
      this.#look("list", () =>
        this.#alive().filter(({ owner }) => owners.includes(owner))
          .toSorted((one, other) => other.createdAt - one.createdAt || (one.id < other.id ? 1 : -1))
          .filter(({ createdAt, id }) =>
            after === undefined || createdAt < after.createdAt || (createdAt === after.createdAt && id < after.id)
          )
          .slice(0, limit)
          .map((state) => ({ ...state, questions: [], outcome: undefined }))),
    query: () => Effect.die("not in the fake"),
    questionsFor: (addresses) =>
      this.#look(
        "questionsFor",
        () =>
          this.#alive().flatMap((task) =>
            task.questions.flatMap((question) =>
              question.to !== undefined && addresses.includes(question.to) ? [{ task, question }] : []
            )
          )
      ),
    cancel: (id, message) =>
      this.#look("cancel", () => {
        const done = this.change(id, { status: "cancelled", statusMessage: message })
        if (done) this.find(id)?.fiber?.interruptUnsafe()
        return done
      }),
    answer: (id, key, answer) =>
      Effect.andThen(
        Effect.suspend(() => this.answering),
        this.#look("answer", () => this.answer(id, key, answer))
      ),
    send: () => Effect.die("not in the fake"),
    sendAll: () => Effect.die("not in the fake"),
    expireSoon: (id) =>
      this.#look("forget", () => {
        const row = this.find(id)
        if (row === undefined || !isFinal(row.state)) return
        row.state = { ...row.state, ttlMs: this.#now + 10_000 - row.state.createdAt }
      }),
    watch: (id) => this.#watch(id),
    readOutput: () => Effect.die("not in the fake"),
    followOutput: () => Stream.die("not in the fake"),
    pace: () => Effect.void,
    runTasks: (handlers) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          this.#handlers = handlers
          for (const row of this.rows.values()) this.#start(row)
        }),
        () => {
          this.#handlers = undefined
          return FiberSet.clear(this.#fibers)
        }
      )
  }
}

export class FakeTasks extends Context.Service<FakeTasks, Fake>()("test/FakeTasks") {}

/** The engine, and the controls for tests. */
export const layer: Layer.Layer<TaskEngine | FakeTasks> = Layer.effectContext(Effect.gen(function*() {
  const fake = new Fake(yield* FiberSet.make<void>(), yield* Clock.Clock, yield* Effect.context<never>())
  return Context.make(TaskEngine, fake.service).pipe(Context.add(FakeTasks, fake))
}))
