/**
 * One round of a stateless request: a run of its handler that ends with the result, or with the input requests that
 * have no response yet.
 *
 * A fiber that requests input suspends indefinitely. Once every other fiber of the handler has ended or waits too, the
 * root fiber of the request is interrupted (`Exchange.replaceWith`), and when it has ended, finalizers included,
 * the request is answered with the input requests. User code could catch a typed error or a defect and mistake it for
 * another failure; while a fiber is interrupted, operators that recover from failures (`catchCause`, `retry`, `orElse`,
 * …) are skipped.
 */
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import * as Codec from "@skein/protocol/Codec"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { Answer, CallOptions, RequestContext, Round as Contract } from "@skein/runtime/RequestContext"
import { LimitExceeded, RequestError, Timeout } from "@skein/runtime/RequestError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Hex from "effect/encoding/Hex"
import type * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Logging from "../../Logging.ts"
import { OnceStore } from "../base/onceStore.ts"
import { sha256 } from "../base/digest.ts"

/** The state of a request between two of its rounds. */
export interface RoundState {
  /** The number of earlier rounds. */
  readonly rounds: number
  /** The responses so far, by the keys of their input requests. */
  readonly answers: Map<string, Answered>
  /** The results of `once`, as JSON. */
  readonly onces: Map<string, unknown>
}

/** The response to an input request, and a digest of the input request. Without a response, none arrived in time. */
export interface Answered {
  readonly asked: string
  readonly answer?: JsonObject | undefined
}

/** An input request that is sent with the result of the round. */
export interface OpenInputRequest {
  /** As the client sees it. */
  readonly request: { readonly method: string; readonly params?: JsonObject | undefined }
  /** A digest of the parts that must be the same when the response arrives. */
  readonly asked: string
  /** How long the response may take, in milliseconds; undefined if it is not limited. */
  readonly timeout: number | undefined
}

/** The rounds of a server, as one of them sees it. */
export interface RoundOwner {
  readonly maxRounds: number
  /** Answers a request whose round has ended with input requests. */
  readonly answer: (round: Round) => Effect.Effect<Answer, McpError.McpError>
}

type Resume = (effect: Effect.Effect<never>) => void

/** 96 bits of a collision-resistant hash, in hexadecimal: enough to distinguish the input requests of one request. */
const digest = (text: string): string => Hex.encode(sha256(text).subarray(0, 12))

export class Round extends OnceStore implements Contract {
  readonly state: RoundState
  /** The input requests that wait for a response, by key. */
  readonly open = new Map<string, OpenInputRequest>()
  readonly #owner: RoundOwner
  readonly #waiting = new Map<Resume, Fiber.Fiber<unknown, unknown>>()
  /** How often each input request was made in this round. */
  readonly #asked = new Map<string, number>()
  readonly #keys = new Set<string>()
  #dispatcher: Fiber.Fiber<unknown, unknown>["currentDispatcher"] | undefined = undefined
  // Changes with each new input request.
  #version = 0
  #isChecking = false
  #ended = false

  constructor(request: RequestContext, owner: RoundOwner, state: RoundState) {
    super(request, state.onces)
    this.#owner = owner
    this.state = state
  }

  override ask(
    method: string,
    params?: JsonObject,
    options?: CallOptions
  ): ReturnType<Contract["ask"]> {
    return Effect.withFiber((fiber) => {
      // A finalizer or a detached fiber calls this: the input requests of the round were sent already.
      if (this.#ended) return stop(fiber)
      const { asked, key } = this.#identify(method, params, options?.key)
      const answered = this.state.answers.get(key)
      if (answered?.asked === asked) {
        return answered.answer === undefined
          ? timedOut(method)
          : Effect.succeed(answered.answer)
      }
      const unsolicited = options?.acceptUnsolicited === true && options.key !== undefined
        ? this.#unsolicited(method, key)
        : undefined
      if (unsolicited !== undefined) {
        this.state.answers.set(key, { asked, answer: unsolicited })
        return Effect.succeed(unsolicited)
      }
      if (this.state.rounds >= this.#owner.maxRounds) return this.#tooManyRounds(method)
      const timeout = options?.timeout === undefined ? undefined : Duration.toMillis(options.timeout)
      this.open.set(key, { request: params === undefined ? { method } : { method, params }, asked, timeout })
      return this.#suspend(key, fiber)
    })
  }

  /**
   * A response that came with the request although nothing has requested it; undefined if there is none, or if it is
   * invalid.
   */
  #unsolicited(name: string, key: string): JsonObject | undefined {
    const { caller: { revision }, params } = this.request
    const given = params?.["inputResponses"]
    if (!isObject(given) || !Object.hasOwn(given, key)) return undefined
    const method = Method.inputRequest(name, revision)
    return method !== undefined && Result.isSuccess(Codec.decode(method.result, revision, given[key]))
      ? given[key] as JsonObject
      : undefined
  }

  #tooManyRounds(method: string): Effect.Effect<never, RequestError> {
    const { maxRounds } = this.#owner
    const message =
      `${this.request.method} was answered with input requests ${maxRounds} times (maxRounds): ${method} was not sent. ` +
      "A question whose text differs each time, as with a time or a random number, needs a key, or its value in once"
    return Effect.andThen(
      Logging.withheld(Effect.logWarning(message)),
      Effect.fail(new RequestError({ reason: new LimitExceeded({ message }), method }))
    )
  }

  #suspend(key: string, fiber: Fiber.Fiber<unknown, unknown>): Effect.Effect<never> {
    return Effect.callback<never>((resume) => {
      this.#waiting.set(resume, fiber)
      this.#dispatcher ??= fiber.currentDispatcher
      this.#checkSoon()
      return Effect.sync(() => {
        this.#waiting.delete(resume)
        // The fiber lost a race, or timed out: the input request is not sent.
        if (!this.#ended) this.open.delete(key)
      })
    })
  }

  /**
   * An input request is identified by its content and the number of equal ones before it: not by their order, which
   * differs from round to round. If the handler was changed meanwhile, its input requests are new ones. With a key of
   * the author, which the client sees unchanged, only the method and the form must stay the same.
   */
  #identify(method: string, params: JsonObject | undefined, given: string | undefined) {
    const asked = digest(CanonicalJson.stringify([method, given === undefined ? params : params?.["requestedSchema"]]))
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
    if (this.#waiting.size > 0) this.#checkSoon()
  }

  /** Checks whether the round has ended, once all fibers that can run have run. */
  #checkSoon(): void {
    this.#version++
    if (this.#isChecking) return
    this.#isChecking = true
    this.#check(this.#version)
  }

  /** Waits two turns of the scheduler after the last input request: by then all fibers that were ready have run. */
  #check(version: number): void {
    this.#nextTurn(() =>
      this.#nextTurn(() => {
        if (this.#version !== version) return this.#check(this.#version)
        this.#isChecking = false
        if (!this.busy && this.#waiting.size > 0) this.#end()
      })
    )
  }

  #nextTurn(then: () => void): void {
    this.#dispatcher!.scheduleTask(then, 0)
  }

  #end(): void {
    this.#ended = true
    this.request.exchange.replaceWith(Effect.suspend(() => this.#owner.answer(this)))
    // The interruption of the root does not reach fibers that are detached or uninterruptible.
    for (const [resume, fiber] of [...this.#waiting]) resume(stop(fiber))
  }
}

/** Interrupts a fiber that requests input, so that only an uninterruptible region can recover from it. */
const stop = (fiber: Fiber.Fiber<unknown, unknown>): Effect.Effect<never> =>
  Effect.suspend(() => {
    fiber.interruptUnsafe()
    return Effect.interrupt
  })

const timedOut = (method: string): Effect.Effect<never, RequestError> =>
  Effect.fail(new RequestError({ reason: new Timeout({ message: `No response to ${method} in time` }), method }))
