/**
 * The health of a listening server: whether its process lives, and whether it is ready for requests.
 *
 * The probes of platforms have neither credentials nor the name of the server in `Host`: Kubernetes and load balancers
 * call an address. So the answers pass no check but that of valid HTTP, and contain nothing about the server.
 */
import { OpenFailed, TransportError } from "@skein/runtime/TransportError"
import { type Service, Workers } from "@skein/runtime/Workers"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { HttpAnswer, HttpRequest } from "../messages/adapter.ts"

/** The options with their defaults, which are documented at `NodeHttp.Health`. */
export interface Resolved {
  readonly live: string
  readonly ready: string
  readonly check: Effect.Effect<unknown, unknown> | undefined
}

// How long a check may take, in milliseconds: as long as Kubernetes waits for a probe.
const checkTimeout = 1_000

/** The most probes that wait for one check. */
const maxWaitingProbes = 1_000

const headers = { "content-type": "application/json", "cache-control": "no-store" }
const wrongMethod = { ...headers, allow: "GET, HEAD" }

type Status = "ok" | "unavailable" | "draining"

const reply = (answer: HttpAnswer, status: Status): void =>
  answer.reply(status === "ok" ? 200 : 503, headers, JSON.stringify({ status }))

/** Runs a check once for all probes that wait for it. */
class Check {
  readonly #check: Effect.Effect<unknown, unknown>
  readonly #context: Context.Context<never>
  readonly #log: (fault: string | undefined, cause: Cause.Cause<unknown>) => Effect.Effect<void>
  readonly #waiting: Array<(isReady: boolean) => void> = []
  #running: Fiber.Fiber<unknown, unknown> | undefined = undefined
  #wasReady = true

  /** `log` logs a change of the result; `fault` is why the server is not ready. */
  constructor(
    check: Effect.Effect<unknown, unknown>,
    context: Context.Context<never>,
    log: (fault: string | undefined, cause: Cause.Cause<unknown>) => Effect.Effect<void>
  ) {
    this.#check = check
    this.#context = context
    this.#log = log
  }

  /** Calls `done` with the result of the check that is running, or of a new one. */
  ask(done: (isReady: boolean) => void): void {
    // A check that takes too long and cannot be interrupted is not run a second time.
    const isOverdue = this.#running !== undefined && this.#waiting.length === 0
    if (isOverdue || this.#waiting.length >= maxWaitingProbes) return done(false)
    this.#waiting.push(done)
    if (this.#waiting.length === 1) this.#run()
  }

  /** Runs the check for the probes that wait, and answers them when it ends, or takes too long. */
  #run(): void {
    const run = Effect.runForkWith(this.#context)
    const running = this.#running = run(this.#check)
    running.addObserver(() => void (this.#running = undefined))
    run(Effect.map(Effect.timeoutOption(Fiber.await(running), checkTimeout), (ended) => {
      if (Option.isNone(ended)) {
        this.#settle(`took longer than ${checkTimeout} ms`)
        running.interruptUnsafe()
      } else if (Exit.isFailure(ended.value)) this.#settle("failed", ended.value.cause)
      else this.#settle(ended.value.value === false ? "returned false" : undefined)
    }))
  }

  #settle(fault: string | undefined, cause: Cause.Cause<unknown> = Cause.empty): void {
    const isReady = fault === undefined
    if (isReady !== this.#wasReady) {
      this.#wasReady = isReady
      Effect.runForkWith(this.#context)(this.#log(fault, cause))
    }
    for (const done of this.#waiting.splice(0)) done(isReady)
  }

  /** Ends the check that is running. */
  close(): void {
    this.#running?.interruptUnsafe()
  }
}

// The question of a worker to the others.
const topic = "ready"

/** Answers the probes of a server. */
export class Probes {
  /** Set when the server begins to shut down. */
  isDraining = false
  readonly #options: Resolved
  readonly #workers: Service | undefined
  readonly #own: Check | undefined
  /** The check of all workers. */
  readonly #all: Check | undefined

  constructor(options: Resolved, context: Context.Context<never>, workers: Service | undefined) {
    const { check } = options
    this.#options = options
    this.#workers = workers
    this.#own = check && new Check(check, context, (fault, cause) =>
      this.isDraining
        ? Effect.void
        : fault === undefined
        ? Effect.logInfo("Health: the server is ready again")
        : Effect.logWarning(`Health: the server is not ready: the check ${fault}`, cause))
    // Each worker logs its own result.
    this.#all = workers && check && new Check(this.#checkAll(workers), context, () => Effect.void)
  }

  /** Answers a request for one of the paths, and returns whether it is one. A request that is not valid HTTP is not. */
  handle(request: HttpRequest, answer: HttpAnswer): boolean {
    const { method, path } = request
    const isReady = path === this.#options.ready
    if ((!isReady && path !== this.#options.live) || request.headFault !== undefined) return false
    if (method !== "GET" && method !== "HEAD") answer.reply(405, wrongMethod, "{\"status\":\"method not allowed\"}")
    else if (!isReady) reply(answer, "ok")
    else this.#answerReady(answer)
    return true
  }

  /** The status without a check. Any worker answers for all: one that is being replaced is ready as long as others serve. */
  get #status(): Status {
    const workers = this.#workers
    if (workers === undefined) return this.isDraining ? "draining" : "ok"
    const phase = workers.phase()
    if (phase === "stopping") return "draining"
    const serving = workers.serving().filter((worker) => !this.isDraining || worker !== workers.number)
    return phase === "serving" && serving.length > 0 ? "ok" : this.isDraining ? "draining" : "unavailable"
  }

  #answerReady(answer: HttpAnswer): void {
    const status = this.#status
    const check = this.#all ?? this.#own
    if (status !== "ok" || check === undefined) return reply(answer, status)
    check.ask((isReady) => {
      const status = this.#status
      reply(answer, status === "ok" && !isReady ? "unavailable" : status)
    })
  }

  /** Whether the checks of all workers succeed, except of those that have begun to shut down meanwhile. */
  #checkAll({ askAll, number, serving }: Service): Effect.Effect<boolean> {
    return Effect.map(askAll(topic, undefined, checkTimeout), (answers) => {
      const counted = new Set(serving().filter((worker) => worker !== number || !this.isDraining))
      return answers.every(({ answer, worker }) => answer === true || !counted.has(worker))
    })
  }

  /** Answers the other workers. */
  readonly answerWorkers: Effect.Effect<void, never, Scope.Scope> = Effect.suspend(() => {
    const own = this.#own
    const check = Effect.callback<boolean>((resume) => own?.ask((isReady) => resume(Effect.succeed(isReady))))
    return own === undefined ? Effect.void : this.#workers?.answer(topic, () => check) ?? Effect.void
  })

  /** Ends the checks that are running. */
  close(): void {
    this.isDraining = true
    this.#own?.close()
    this.#all?.close()
  }
}

const invalid = (message: string): Effect.Effect<never, TransportError> =>
  Effect.fail(new TransportError({ reason: new OpenFailed({ message }) }))

/** Makes the probes of a server; `taken` are the paths of its endpoint. Fails if a path cannot be used. */
export const make = (
  options: Resolved,
  taken: ReadonlyArray<string>,
  context: Context.Context<never>
): Effect.Effect<Probes, TransportError, Scope.Scope> =>
  Effect.flatMap(Effect.serviceOption(Workers), (workers) => {
    for (const path of [options.live, options.ready]) {
      if (!path.startsWith("/")) return invalid(`The path "${path}" of the option health does not begin with a slash`)
      if (taken.includes(path)) return invalid(`The path ${path} of the option health is a path of the endpoint`)
    }
    const made = Effect.acquireRelease(
      Effect.sync(() => new Probes(options, context, Option.getOrUndefined(workers))),
      (probes) => Effect.sync(() => probes.close())
    )
    return Effect.tap(made, ({ answerWorkers }) => answerWorkers)
  })
