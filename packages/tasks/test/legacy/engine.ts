/**
 * An engine that keeps tasks in a map, for the tests of what clients see of them: it runs their handlers once, forgets them with
 * the process, and lets a test end, ask and change them by hand.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import { type Handlers, TaskEngine } from "@skein/tasks/TaskEngine"
import { TaskError } from "@skein/tasks/TaskError"
import { diagnosis, isError } from "../../src/internal/diagnosis.ts"
import { isFinal, type NewTask, type Outcome, type Question, type State } from "@skein/tasks/TaskState"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { TaskExchange } from "../../src/internal/exchange.ts"

interface Kept {
  state: State
  readonly task: NewTask
  readonly listeners: Set<() => void>
  readonly answers: Map<string, Deferred.Deferred<JsonObject>>
  fiber: Fiber.Fiber<void> | undefined
}

const name = (): string => Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString("base64url")

export class Fake {
  readonly kept = new Map<string, Kept>()
  /** Every status that a task ever had, in order. */
  readonly history = new Map<string, Array<State["status"]>>()
  /** Questions that were answered: only the first answer counts. */
  readonly answered: Array<readonly [key: string, answer: JsonObject]> = []
  /** How many look at a task now. */
  watching = 0
  /** Runs no handlers: tests do what they would. */
  manual = false
  limit = Infinity
  /** What the store waits for before it keeps an answer. */
  slow: Effect.Effect<void, TaskError> = Effect.void
  handlers: Handlers | undefined = undefined
  readonly scope: Scope.Scope
  readonly clock: Clock.Clock

  readonly services: Context.Context<never>

  constructor(scope: Scope.Scope, clock: Clock.Clock, services: Context.Context<never>) {
    this.scope = scope
    this.clock = clock
    this.services = services
  }

  get now(): number {
    return this.clock.currentTimeMillisUnsafe()
  }

  find(id: string): Kept | undefined {
    const kept = this.kept.get(id)
    if (kept === undefined) return undefined
    const { createdAt, ttl } = kept.state
    if (ttl !== null && this.now >= createdAt + ttl) {
      this.kept.delete(id)
      kept.fiber?.interruptUnsafe()
      for (const listener of [...kept.listeners]) listener()
      return undefined
    }
    return kept
  }

  change(id: string, change: Partial<State>): boolean {
    const kept = this.find(id)
    if (kept === undefined || isFinal(kept.state)) return false
    const state = { ...kept.state, ...change, version: kept.state.version + 1, updatedAt: this.now }
    kept.state = isFinal(state) ? { ...state, questions: [] } : state
    this.history.get(id)!.push(kept.state.status)
    for (const listener of [...kept.listeners]) listener()
    return true
  }

  end(id: string, outcome: Outcome, message = diagnosis(outcome)): boolean {
    return this.change(id, {
      status: outcome._tag === "Result" ? "completed" : "failed",
      isError: isError(outcome),
      outcome,
      ...(message === undefined ? undefined : { message })
    })
  }

  ask(id: string, question: Question): Deferred.Deferred<JsonObject> {
    const kept = this.find(id)!
    const answer = Deferred.makeUnsafe<JsonObject>()
    kept.answers.set(question.key, answer)
    this.change(id, { status: "input_required", questions: [...kept.state.questions, question] })
    return answer
  }

  withdraw(id: string, key: string): boolean {
    const kept = this.find(id)
    if (kept === undefined || isFinal(kept.state)) return false
    const questions = kept.state.questions.filter((question) => question.key !== key)
    if (questions.length === kept.state.questions.length) return false
    return this.change(id, { questions, status: questions.length === 0 ? "working" : "input_required" })
  }

  answer(id: string, key: string, answer: JsonObject): boolean {
    if (!this.withdraw(id, key)) return false
    this.answered.push([key, answer])
    Deferred.doneUnsafe(this.find(id)!.answers.get(key)!, Effect.succeed(answer))
    return true
  }

  submit(task: NewTask): Effect.Effect<State, TaskError> {
    return Effect.suspend(() => {
      if (this.kept.size >= this.limit) return Effect.fail(new TaskError({ reason: "Limit", message: "full" }))
      const id = name()
      const { args: _, limits: __, ...rest } = task
      const state: State = {
        ...rest,
        id,
        status: "working",
        message: undefined,
        progress: undefined,
        createdAt: this.now,
        updatedAt: this.now,
        version: 1,
        questions: [],
        isError: false,
        outcome: undefined
      }
      const kept: Kept = { state, task, listeners: new Set(), answers: new Map(), fiber: undefined }
      this.kept.set(id, kept)
      this.history.set(id, ["working"])
      const run = this.manual ? undefined : this.#run(id, kept)
      // In a context of its own: whoever submits it is gone when it goes on.
      if (run !== undefined) kept.fiber = Fiber.runIn(Effect.runForkWith(this.services)(run), this.scope)
      return Effect.succeed(state)
    })
  }

  #run(id: string, { task }: Kept): Effect.Effect<void> | undefined {
    const handler = this.handlers?.(task.tool)
    if (handler === undefined) return undefined
    let asked = 0
    const current: CurrentTask["Service"] = {
      id,
      say: (message) => Effect.sync(() => void this.change(id, { message })),
      step: (_name, _options, execute) => execute("key"),
      sleep: (_name, duration) => Effect.sleep(duration),
      compensate: () => Effect.void
    }
    const exchange = new TaskExchange(
      {
        id,
        tool: task.tool,
        pool: task.pool,
        owner: task.owner,
        args: task.args,
        caller: task.caller,
        status: "working",
        said: 0,
        settled: false,
        waits: false
      },
      {
        current,
        ask: (method, params, options) =>
          Effect.suspend(() => {
            const key = options?.key ?? `q${++asked}`
            return Effect.onInterrupt(
              Deferred.await(this.ask(id, { key, method, params })),
              () => Effect.sync(() => this.withdraw(id, key))
            )
          }),
        progress: (progress) => Effect.sync(() => void this.change(id, { progress }))
      }
    )
    return Effect.map(Effect.andThen(Effect.yieldNow, handler.run(exchange)), (outcome) => void this.end(id, outcome))
  }

  watch(id: string): Stream.Stream<State> {
    const states = Effect.gen({ self: this }, function*() {
      const queue = yield* Queue.sliding<void>(1)
      const kept = this.find(id)
      const listener = (): void => void Queue.offerUnsafe(queue, undefined)
      kept?.listeners.add(listener)
      this.watching++
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          this.watching--
          kept?.listeners.delete(listener)
        })
      )
      listener()
      return Stream.fromQueue(queue).pipe(
        Stream.map(() => this.find(id)?.state),
        Stream.takeUntil((state) => state === undefined || isFinal(state)),
        Stream.filter((state) => state !== undefined)
      )
    })
    return Stream.unwrap(states)
  }

  get service(): TaskEngine["Service"] {
    return {
      submit: (task) => this.submit(task),
      get: (id) => Effect.sync(() => this.find(id)?.state),
      list: (owners, { after, limit }) =>
        Effect.sync(() =>
          [...this.kept.keys()].flatMap((id) => this.find(id)?.state ?? [])
            .filter(({ owner }) => owners.includes(owner))
            .sort((one, other) => other.createdAt - one.createdAt || (one.id < other.id ? 1 : -1))
            .filter(({ createdAt, id }) =>
              after === undefined || createdAt < after.createdAt || (createdAt === after.createdAt && id < after.id)
            )
            .slice(0, limit)
            .map((state) => ({ ...state, questions: [], outcome: undefined }))
        ),
      cancel: (id, message) =>
        Effect.sync(() => {
          const done = this.change(id, { status: "cancelled", message })
          if (done) this.find(id)?.fiber?.interruptUnsafe()
          return done
        }),
      answer: (id, key, answer) => Effect.map(this.slow, () => this.answer(id, key, answer)),
      // What was waited for is looked at by none of these tests afterwards.
      forget: () => Effect.void,
      watch: (id) => this.watch(id),
      work: (handlers) => Effect.sync(() => void (this.handlers = handlers))
    }
  }
}

/** The engine behind the tests' hands. */
export class FakeEngine extends Context.Service<FakeEngine, Fake>()("test/FakeEngine") {}

export const layer: Layer.Layer<TaskEngine | FakeEngine> = Layer.effectContext(Effect.gen(function*() {
  const fake = new Fake(yield* Scope.Scope, yield* Clock.Clock, yield* Effect.context<never>())
  return Context.make(TaskEngine, fake.service).pipe(Context.add(FakeEngine, fake))
}))
