/**
 * One round of a request that asks, in the request era: a run of its handler that ends with the result, or with the questions that
 * nobody has answered yet.
 *
 * Who asks parks for ever. When nobody has anything left to ask, the *root fiber* of the request is interrupted, and once it is over,
 * finalizers and all, the request is answered with the questions. A typed error or a defect could be caught by user code and taken
 * for something else; while a fiber is interrupted, what recovers from failures (`catchCause`, `retry`, `orElse`, …) is skipped.
 */
import * as Codec from "@skein/protocol/Codec"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type { CallOptions, RequestContext, Round as Contract } from "@skein/runtime/RequestContext"
import { RequestError } from "@skein/runtime/RequestError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import type * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import { OnceStore } from "./onceStore.ts"
import { canonicalJson, sha256 } from "./digest.ts"

/** What a round starts from, and leaves to the next one. */
export interface State {
  /** How many rounds there were before. */
  readonly rounds: number
  /** The answers so far, by the keys of their questions. */
  readonly answers: Map<string, Answered>
  /** What has run once, as JSON. */
  readonly onces: Map<string, unknown>
}

/** An answer, and what was asked under its key. Without one nobody has answered in time. */
export interface Answered {
  readonly asked: string
  readonly answer?: JsonObject | undefined
}

/** A question that goes out with the answer of the round. */
export interface OpenQuestion {
  /** As the client sees it. */
  readonly request: { readonly method: string; readonly params?: JsonObject | undefined }
  /** A digest of what has to be the same when the answer comes. */
  readonly asked: string
  /** How long its answer may take, where it was asked so, in milliseconds. */
  readonly timeout: number | undefined
}

/** What a question is known by in the rounds after. */
interface Identity {
  readonly key: string
  readonly asked: string
}

/** What a round needs of the server. */
export interface Host {
  readonly maxRounds: number
  /** Answers a request whose round has ended with questions. */
  readonly answer: (round: Round) => NonNullable<RequestContext["instead"]>
}

type Resume = (effect: Effect.Effect<never>) => void

/** 96 bits, of a collision-resistant hash: enough to tell the questions of one request apart. */
const digest = (text: string): string => Base64Url.encode(sha256(text).subarray(0, 12))

export class Round extends OnceStore implements Contract {
  readonly state: State
  /** The questions that wait for an answer, by key. */
  readonly open = new Map<string, OpenQuestion>()
  readonly #host: Host
  readonly #parked = new Map<Resume, Fiber.Fiber<unknown, unknown>>()
  /** How often each question was asked in this round. */
  readonly #asked = new Map<string, number>()
  readonly #keys = new Set<string>()
  #dispatcher: Fiber.Fiber<unknown, unknown>["currentDispatcher"] | undefined = undefined
  #turn = 0
  #armed = false
  #ended = false

  constructor(exchange: RequestContext, host: Host, state: State) {
    super(exchange, state.onces)
    this.#host = host
    this.state = state
  }

  override ask(
    method: string,
    params?: JsonObject,
    options?: CallOptions
  ): ReturnType<Contract["ask"]> {
    return Effect.withFiber((fiber) => {
      // A finalizer, or a fiber that nobody waits for: it asks when it is too late.
      if (this.#ended) return stop(fiber)
      const { asked, key } = this.#identify(method, params, options?.key)
      const answered = this.state.answers.get(key)
      if (answered?.asked === asked) {
        return answered.answer === undefined
          ? late(method)
          : Effect.succeed(answered.answer)
      }
      const unasked = options?.acceptUnsolicited === true && options.key !== undefined
        ? this.#unasked(method, key)
        : undefined
      if (unasked !== undefined) {
        this.state.answers.set(key, { asked, answer: unasked })
        return Effect.succeed(unasked)
      }
      if (this.state.rounds >= this.#host.maxRounds) return this.#tooOften(method)
      const timeout = options?.timeout === undefined ? undefined : Duration.toMillis(options.timeout)
      this.open.set(key, { request: params === undefined ? { method } : { method, params }, asked, timeout })
      return this.#park(key, fiber)
    })
  }

  /** An answer that came with the request without having been asked for, if it is one. */
  #unasked(name: string, key: string): JsonObject | undefined {
    const { caller: { revision }, params } = this.exchange
    const given = params?.["inputResponses"]
    if (!isObject(given) || !Object.hasOwn(given, key)) return undefined
    const method = Method.inputRequest(name, revision)
    return method !== undefined && Result.isSuccess(Codec.decode(method.result, revision, given[key]))
      ? given[key] as JsonObject
      : undefined
  }

  #tooOften(method: string): Effect.Effect<never, RequestError> {
    const { maxRounds } = this.#host
    const message =
      `${this.exchange.method} was answered with questions ${maxRounds} times already: ${method} was not sent`
    return Effect.fail(new RequestError({ reason: "Limit", method, message }))
  }

  #park(key: string, fiber: Fiber.Fiber<unknown, unknown>): Effect.Effect<never> {
    return Effect.callback<never>((resume) => {
      this.#parked.set(resume, fiber)
      this.#dispatcher ??= fiber.currentDispatcher
      this.#arm()
      return Effect.sync(() => {
        this.#parked.delete(resume)
        // It lost a race, or its time is over: the question is withdrawn.
        if (!this.#ended) this.open.delete(key)
      })
    })
  }

  /**
   * A question is known by what is asked, and how often it was asked before: not by the order in which questions come, which is
   * another one in each round, and so that a handler that was changed meanwhile asks anew. Of one with a key of the author's,
   * which the client sees as it is, the method and the form have to stay the same.
   */
  #identify(method: string, params: JsonObject | undefined, given: string | undefined): Identity {
    const asked = digest(canonicalJson([method, given === undefined ? params : params?.["requestedSchema"]]))
    const name = given ?? asked
    let times = this.#asked.get(name) ?? 0
    let key = times === 0 ? name : `${name}.${times}`
    while (this.#keys.has(key)) key = `${name}.${++times}`
    this.#asked.set(name, times + 1)
    this.#keys.add(key)
    return { key, asked }
  }

  // ---- the end of the round

  protected override settled(): void {
    if (this.#parked.size > 0) this.#arm()
  }

  #arm(): void {
    this.#turn++
    if (this.#armed) return
    this.#armed = true
    this.#wait(this.#turn)
  }

  /** Two hops of the scheduler after the last question: what was ready to run when it was asked has run, and has asked too. */
  #wait(turn: number): void {
    this.#hop(() =>
      this.#hop(() => {
        if (this.#turn !== turn) return this.#wait(this.#turn)
        this.#armed = false
        if (!this.busy && this.#parked.size > 0) this.#end()
      })
    )
  }

  #hop(then: () => void): void {
    this.#dispatcher!.scheduleTask(then, 0)
  }

  #end(): void {
    this.#ended = true
    const { exchange } = this
    exchange.instead = Effect.suspend(() => this.#host.answer(this))
    exchange.fiber?.interruptUnsafe()
    // Those whom the interruption of the root does not reach: they are detached, or uninterruptible.
    for (const [resume, fiber] of [...this.#parked]) resume(stop(fiber))
  }
}

/** Ends a fiber that asks, so that nothing but an uninterruptible region can recover from it. */
const stop = (fiber: Fiber.Fiber<unknown, unknown>): Effect.Effect<never> =>
  Effect.suspend(() => {
    fiber.interruptUnsafe()
    return Effect.interrupt
  })

const late = (method: string): Effect.Effect<never, RequestError> =>
  Effect.fail(new RequestError({ reason: "TimedOut", method, message: `No answer to ${method} in time` }))
