/**
 * Calls that wait for the answers of stateless callers.
 *
 * In the stateless revision (2026-07-28) a request is answered with input requests, and the caller sends it again with
 * the responses. A remote server of a session-based revision asks while its request is open, so the call must go on
 * between the two rounds: it is parked here. The caller's `requestState` names the parked call. The server seals the
 * state, and binds it to the principal and to the request.
 */
import type { InputRequest, InputResponse } from "@skein/protocol/InputRequired"
import type * as McpError from "@skein/protocol/McpError"
import * as ClientKey from "@skein/runtime/ClientKey"
import { KeyedCounter } from "@skein/runtime/KeyedCounter"
import { McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import * as Forwarding from "@skein/server/Forwarding"
import { InputError, LimitExceeded } from "@skein/server/InputError"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { type ForwardedRequest, ownerOf } from "../connection/forwardedRequest.ts"
import { remoteError } from "../connection/remoteError.ts"

/** The part of the parked calls that one client may have. */
const clientShare = 0.1

/** The bounds of parked calls. */
export interface Bounds {
  readonly maxWaiting: number
  /** In milliseconds. */
  readonly waitTimeout: number
}

/** An input request of the remote server. */
interface Question {
  readonly key: string
  readonly question: InputRequest
  readonly answer: Deferred.Deferred<InputResponse, InputError>
  /** Whether it no longer needs an answer: it was answered, or the remote server has withdrawn it. */
  isSettled: boolean
}

/** A call at the remote server that outlives the round in which it began. */
export class ParkedCall<A> implements ForwardedRequest {
  readonly id = globalThis.crypto.randomUUID()
  readonly caller: ForwardedRequest["caller"]
  readonly owner: unknown
  readonly client: string | undefined
  readonly sentIds: Array<number> = []
  readonly questions: Array<Question> = []
  lacking: ForwardedRequest["lacking"] = undefined
  request: RequestContext | undefined
  fiber: Fiber.Fiber<A, McpError.McpError> | undefined = undefined
  /** The number of rounds that follow it now: two if the caller has sent a round twice. */
  followers = 0
  /** Ends the call after `waitTimeout`, while no round follows it. */
  expiry: Fiber.Fiber<void> | undefined = undefined
  readonly #retain: (call: ParkedCall<unknown>) => string | undefined
  #next = Deferred.makeUnsafe<void>()

  /** `retain` returns why the call may not ask. */
  constructor(retain: (call: ParkedCall<unknown>) => string | undefined, request: RequestContext) {
    this.#retain = retain
    this.request = request
    this.caller = request.caller
    this.owner = ownerOf(request)
    this.client = ClientKey.ofRequest(request)
  }

  readonly ask: ForwardedRequest["ask"] = (question) =>
    Effect.suspend(() => {
      const refused = this.#retain(this)
      if (refused !== undefined) {
        const { revision } = this.caller
        const reason = new LimitExceeded({ message: refused })
        return Effect.fail(new InputError({ reason, method: question.method, revision }))
      }
      const answer = Deferred.makeUnsafe<InputResponse, InputError>()
      const asked = { key: `question-${this.questions.length + 1}`, question, answer, isSettled: false }
      this.questions.push(asked)
      this.#asked()
      return Effect.ensuring(Deferred.await(answer), Effect.sync(() => void (asked.isSettled = true)))
    })

  #asked(): void {
    const next = this.#next
    this.#next = Deferred.makeUnsafe()
    Deferred.doneUnsafe(next, Effect.void)
  }

  /** Succeeds with the next question. */
  get nextQuestion(): Effect.Effect<void> {
    return Deferred.await(this.#next)
  }

  /** Whether an input request waits for the caller. */
  get isAsking(): boolean {
    return this.questions.some(({ isSettled }) => !isSettled)
  }
}

/** The calls in progress of stateless callers that can be asked. */
export type ParkedCalls = ReturnType<typeof makeParkedCalls>

/** Makes the calls of one proxy. Their fibers end with the scope. */
export const makeParkedCalls = ({ maxWaiting, waitTimeout }: Bounds, scope: Scope.Scope) => {
  const maxPerClient = Math.max(1, Math.floor(maxWaiting * clientShare))
  /** The calls that have asked, by id. */
  const calls = new Map<string, ParkedCall<unknown>>()
  /** Their numbers by client. */
  const counts = new KeyedCounter()

  /** Adds a call that asks for the first time. Returns why it may not ask. */
  const retain = (call: ParkedCall<unknown>): string | undefined => {
    if (calls.has(call.id)) return undefined
    switch (counts.acquire(call.client, maxWaiting, maxPerClient)) {
      case "max":
        return `${maxWaiting} calls are waiting for the answers of their clients (maxWaiting)`
      case "maxPerKey":
        return `${maxPerClient} calls of this client are waiting for its answers (a tenth of maxWaiting)`
      default:
        calls.set(call.id, call)
        return undefined
    }
  }

  /**
   * Starts a call in a fiber of its own, and waits until it has ended or asks. Interrupting the wait interrupts the call.
   * Returns the outcome if it has ended, or else the call.
   */
  const start = <A>(
    request: RequestContext,
    run: (call: ParkedCall<A>) => Effect.Effect<A, McpError.McpError>
  ): Effect.Effect<Exit.Exit<A, McpError.McpError> | ParkedCall<A>> =>
    Effect.uninterruptibleMask(Effect.fnUntraced(function*(restore) {
      const call = new ParkedCall<A>(retain, request)
      const running = Effect.interruptible(Effect.suspend(() => run(call)))
      const fiber = call.fiber = yield* Effect.forkIn(running, scope, { startImmediately: true })
      const settled = Effect.suspend(() =>
        call.isAsking ? Effect.void : Effect.raceFirst(call.nextQuestion, Effect.asVoid(Fiber.await(fiber)))
      )
      yield* Effect.onInterrupt(restore(settled), () => end(call))
      const exit = fiber.pollUnsafe()
      if (exit === undefined) return call
      forget(call)
      return exit
    }))

  /** Follows a parked call in a round: passes its questions to the caller, until it has ended. */
  const follow = (id: string, request: RequestContext): Effect.Effect<unknown, McpError.McpError> =>
    Effect.suspend(() => {
      const call = calls.get(id)
      if (call === undefined || call.caller.principal?.id !== request.caller.principal?.id) {
        return Effect.fail(remoteError("CallEnded", "The call has ended without these answers. Make it again"))
      }
      call.followers++
      call.request = request
      call.expiry?.interruptUnsafe()
      call.expiry = undefined
      return Effect.onExit(ask(call, request), (exit) => left(call, request, exit))
    })

  const ask = (call: ParkedCall<unknown>, request: RequestContext): Effect.Effect<unknown, McpError.McpError> => {
    const asked = new Set<Question>()
    const put = (question: Question) =>
      Forwarding.inputRequest(question.question, { key: question.key }).pipe(
        Effect.provideService(McpRequest, request),
        // A round that ends interrupts this: then the question stays open.
        Effect.matchEffect({
          onFailure: (error) => Deferred.fail(question.answer, error),
          onSuccess: (response) => Deferred.succeed(question.answer, response)
        })
      )
    return Effect.gen(function*() {
      while (true) {
        const { nextQuestion } = call
        // Questions that arrive in one turn are asked together.
        yield* Effect.yieldNow
        const open = call.questions.filter((question) => !question.isSettled && !asked.has(question))
        if (open.length > 0) {
          for (const question of open) asked.add(question)
          yield* Effect.forEach(open, put, { concurrency: "unbounded", discard: true })
          continue
        }
        const exit = call.fiber!.pollUnsafe()
        if (exit !== undefined) return yield* exit
        yield* Effect.raceFirst(nextQuestion, Effect.asVoid(Fiber.await(call.fiber!)))
      }
    })
  }

  /**
   * A round has ended. The call goes on if the round was answered with input requests. A result that arrives before the
   * next round waits for it.
   */
  const left = (
    call: ParkedCall<unknown>,
    request: RequestContext,
    exit: Exit.Exit<unknown, unknown>
  ): Effect.Effect<void> =>
    Effect.suspend(() => {
      call.followers--
      if (call.request === request) call.request = undefined
      if (call.followers > 0) return Effect.void
      const isAnswered = request.exchange.state === "Replacing" && !request.cancelled
      if (Exit.isSuccess(exit) || !Cause.hasInterruptsOnly(exit.cause) || !isAnswered) return end(call)
      const expire = Effect.andThen(Effect.sleep(waitTimeout), Effect.suspend(() => end(call)))
      return Effect.map(Effect.forkIn(Effect.interruptible(expire), scope), (fiber) => {
        call.expiry = fiber
      })
    })

  const forget = ({ client, id }: Pick<ParkedCall<unknown>, "client" | "id">): void => {
    if (calls.delete(id)) counts.release(client)
  }

  /** Forgets a call, and interrupts it at the remote server if it has not ended. */
  const end = (call: Pick<ParkedCall<unknown>, "client" | "fiber" | "id">): Effect.Effect<void> =>
    Effect.suspend(() => {
      forget(call)
      return Fiber.interrupt(call.fiber!)
    })

  return { start, follow, size: () => calls.size }
}
