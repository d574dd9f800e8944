/**
 * The input requests of a task in the stateless revision. Each is passed to the host once, those that arrive together
 * are handled together, and their answers are sent together.
 */
import type { InputRequest, InputRequests, InputResponse } from "@skein/protocol/InputRequired"
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Hash from "effect/Hash"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { type ClientError, InvalidResponse, LimitExceeded } from "../../../ClientError.ts"
import { clientError } from "../../base/errors.ts"
import type { ReadyReply } from "../../connection/inputRequests.ts"
import { inputRequestConcurrency, maxInputRequests } from "../../input/handlers.ts"
import * as Requests from "./requests.ts"
import { quote } from "@skein/protocol/Text"

const method = Method.CallTool.name

/** One input request. */
interface Asked {
  /**
   * The digest of the request under this key: a server "MUST NOT use the same key to refer to two distinct requests".
   */
  readonly digest: number
  /** The fiber of the handler. */
  fiber: Fiber.Fiber<unknown, unknown> | undefined
  /** The answer, until the server has accepted it. */
  answer: InputResponse | undefined
  /** The error with which the server refused the answer. */
  refused: ClientError | undefined
}

/** The input requests of a task so far. */
export class Memory {
  readonly asked = new Map<string, Asked>()
  /** How many input requests the server has withdrawn. A request that replaces or repeats one of them counts again. */
  withdrawn = 0
}

/** The task that the input requests belong to. */
export interface Asking {
  readonly terms: Requests.TaskContext
  /** The task cannot go on. */
  readonly failed: (error: ClientError) => void
  /** The server did not accept an answer, or may not have received it: its status must be requested. */
  readonly unsure: () => void
}

// A request that is nested deeper than the stack has no digest: then it is identified by its key alone.
const digestOf = (question: InputRequest): number => {
  try {
    return Hash.hash(question)
  } catch {
    return 0
  }
}

export type Questions = ReturnType<typeof makeQuestions>

/**
 * Handles the input requests of a task. The memory outlives the scope: a request that was answered is not passed to the
 * host again when the task is followed again.
 */
export const makeQuestions = (asking: Asking, scope: Scope.Scope, memory: Memory) => {
  const turns = Semaphore.makeUnsafe(inputRequestConcurrency)
  const all = memory.asked
  /** The keys whose answers wait to be sent, or are being sent. */
  const sending = new Set<string>()
  let waiting: Array<string> = []
  let sender: Fiber.Fiber<void> | undefined = undefined

  /** Handles the input requests that are open now. */
  const take = (questions: InputRequests): Effect.Effect<void, ClientError> =>
    Effect.suspend(() => {
      const entries = Object.entries(questions)
      const { answers, supervisor, tasks } = asking.terms.client
      const { maxTaskInputRequests } = tasks.settings
      if (entries.length > maxInputRequests) {
        const message = `The task has ${entries.length} input requests, more than ${maxInputRequests}`
        return Effect.fail(clientError(LimitExceeded, message, method))
      }
      const fresh: Array<readonly [key: string, question: InputRequest]> = []
      const unsent: Array<string> = []
      for (const [key, question] of entries) {
        const asked = all.get(key)
        if (asked === undefined) {
          fresh.push([key, question])
        } else if (asked.digest !== digestOf(question)) {
          const message = `The task uses the key ${quote(key)} for two different input requests`
          return Effect.fail(clientError(InvalidResponse, message, method))
        } else if (asked.refused !== undefined) {
          return Effect.fail(asked.refused)
        } else if (asked.answer !== undefined && !sending.has(key)) {
          unsent.push(key)
        }
      }
      if (all.size + memory.withdrawn + fresh.length > maxTaskInputRequests) {
        const message = `The task has made more than ${maxTaskInputRequests} input requests`
        return Effect.fail(clientError(LimitExceeded, message, method))
      }
      withdraw(questions)
      const ready = answers.ready(supervisor.last, method, Object.fromEntries(fresh), entries.length)
      if (Result.isFailure(ready)) return Effect.fail(ready.failure)
      for (const [key, question] of fresh) {
        all.set(key, { digest: digestOf(question), fiber: undefined, answer: undefined, refused: undefined })
      }
      return Effect.andThen(
        Effect.forEach(unsent, (key) => send(key), { discard: true }),
        Effect.forEach(ready.success, (reply) => put(reply), { discard: true })
      )
    })

  /** Interrupts the handlers of requests that the server has withdrawn. The server may make them again. */
  const withdraw = (questions: InputRequests): void => {
    for (const [key, asked] of all) {
      if (Object.hasOwn(questions, key) || asked.fiber === undefined || asked.answer !== undefined) continue
      asked.fiber.interruptUnsafe()
      all.delete(key)
      memory.withdrawn++
    }
  }

  /** Passes an input request to the host, when it is its turn. */
  const put = ([key, reply]: ReadyReply): Effect.Effect<void> => {
    const asked = all.get(key)!
    const answering = Effect.matchEffect(turns.withPermit(reply), {
      onSuccess: (answer) => {
        asked.answer = answer
        return send(key)
      },
      onFailure: (error) => Effect.sync(() => asking.failed(error))
    })
    return Effect.map(Effect.forkIn(answering, scope, { startImmediately: true }), (fiber) => {
      asked.fiber = fiber
      fiber.addObserver((exit) => {
        asked.fiber = undefined
        // The handler was interrupted without an answer: the next run passes the request to the host again.
        const left = Exit.isFailure(exit) && asked.answer === undefined
        if (left && all.get(key) === asked) all.delete(key)
      })
    })
  }

  // ---- answers

  /**
   * Sends an answer, together with those that arrive before it is sent. Answers that arrive meanwhile are sent next.
   */
  const send = (key: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      sending.add(key)
      waiting.push(key)
      if (sender !== undefined) return Effect.void
      return Effect.map(Effect.forkIn(sendAll(), scope), (fiber) => {
        sender = fiber
      })
    })

  const sendAll = (): Effect.Effect<void> =>
    Effect.gen(function*() {
      while (waiting.length > 0) {
        const keys = waiting
        waiting = []
        yield* reply(keys)
        for (const key of keys) sending.delete(key)
      }
      sender = undefined
    })

  const reply = (keys: ReadonlyArray<string>): Effect.Effect<void> => {
    // `Object.fromEntries` defines own members, so that a key may be `__proto__`.
    const answers = Object.fromEntries(keys.map((key) => [key, all.get(key)!.answer!]))
    return Effect.matchEffect(Requests.update(asking.terms, answers), {
      onSuccess: () =>
        Effect.sync(() => {
          for (const key of keys) all.get(key)!.answer = undefined
        }),
      onFailure: (error) => {
        const refused = error.reason._tag === "ProtocolError" && error.reason.error.reason !== "InternalError"
        // The answers are sent one by one, to find out which of them the server refuses.
        if (refused && keys.length > 1) return Effect.forEach(keys, (key) => reply([key]), { discard: true })
        return Effect.sync(() => {
          if (refused) all.get(keys[0]!)!.refused = error
          asking.unsure()
        })
      }
    })
  }

  return { take }
}
