/**
 * The health of a listening server: whether its process lives, and whether it is ready for requests.
 *
 * The probes of platforms have neither credentials nor the name of the server in `Host`: Kubernetes and load balancers
 * call an address. So the answers pass no check but that of valid HTTP, and contain nothing about the server.
 */
import { OpenFailed, TransportError } from "@skein/runtime/TransportError"
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

/** Answers the probes of a server. */
export class Probes {
  /** Set when the server begins to shut down. */
  isDraining = false
  readonly #options: Resolved
  readonly #context: Context.Context<never>
  readonly #waiting: Array<(isReady: boolean) => void> = []
  #running: Fiber.Fiber<unknown, unknown> | undefined = undefined
  #wasReady = true

  constructor(options: Resolved, context: Context.Context<never>) {
    this.#options = options
    this.#context = context
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

  #answerReady(answer: HttpAnswer): void {
    const { check } = this.#options
    if (this.isDraining) return reply(answer, "draining")
    if (check === undefined) return reply(answer, "ok")
    // A check that takes too long and cannot be interrupted is not run a second time.
    const isOverdue = this.#running !== undefined && this.#waiting.length === 0
    if (isOverdue || this.#waiting.length >= maxWaitingProbes) return reply(answer, "unavailable")
    this.#waiting.push((isReady) => reply(answer, this.isDraining ? "draining" : isReady ? "ok" : "unavailable"))
    if (this.#waiting.length === 1) this.#run(check)
  }

  /** Runs the check for the probes that wait, and answers them when it ends, or takes too long. */
  #run(check: Effect.Effect<unknown, unknown>): void {
    const run = Effect.runForkWith(this.#context)
    const running = this.#running = run(check)
    running.addObserver(() => void (this.#running = undefined))
    run(Effect.map(Effect.timeoutOption(Fiber.await(running), checkTimeout), (ended) => {
      if (Option.isNone(ended)) {
        this.#settle(`took longer than ${checkTimeout} ms`)
        running.interruptUnsafe()
      } else if (Exit.isFailure(ended.value)) this.#settle("failed", ended.value.cause)
      else this.#settle(ended.value.value === false ? "returned false" : undefined)
    }))
  }

  /** Answers the probes that wait. `fault` is why the server is not ready. */
  #settle(fault: string | undefined, cause: Cause.Cause<unknown> = Cause.empty): void {
    const isReady = fault === undefined
    if (isReady !== this.#wasReady && !this.isDraining) {
      this.#wasReady = isReady
      const log = isReady
        ? Effect.logInfo("Health: the server is ready again")
        : Effect.logWarning(`Health: the server is not ready: the check ${fault}`, cause)
      Effect.runForkWith(this.#context)(log)
    }
    for (const done of this.#waiting.splice(0)) done(isReady)
  }

  /** Ends the check that is running. */
  close(): void {
    this.isDraining = true
    this.#running?.interruptUnsafe()
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
  Effect.suspend(() => {
    for (const path of [options.live, options.ready]) {
      if (!path.startsWith("/")) return invalid(`The path "${path}" of the option health does not begin with a slash`)
      if (taken.includes(path)) return invalid(`The path ${path} of the option health is a path of the endpoint`)
    }
    return Effect.acquireRelease(
      Effect.sync(() => new Probes(options, context)),
      (probes) => Effect.sync(() => probes.close())
    )
  })
