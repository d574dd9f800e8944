/**
 * What a task asks in the request era: each question is put to the host once, and its answer is sent as soon as it is there.
 */
import type { InputRequest, InputRequests, InputResponses } from "@skein/protocol/InputRequired"
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Hash from "effect/Hash"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { ClientError } from "../../ClientError.ts"
import { quoted } from "../printable.ts"

const method = Method.CallTool.name

/** One question. */
interface Asked {
  /** What was asked under the key: a server "MUST NOT use the same key to refer to two distinct requests". */
  readonly digest: number
  fiber: Fiber.Fiber<unknown, unknown> | undefined
  /** The answer, until the server has it. */
  answer: InputResponses | undefined
  /** What the server said to it. */
  refused: ClientError | undefined
}

/** How questions are bounded. */
export interface Bounds {
  readonly maxTaskQuestions: number
  readonly maxQuestions: number
  readonly questionConcurrency: number
}

/** Whom they are put to, and whom the answers are told. */
export interface Asking {
  readonly ask: (questions: InputRequests) => Effect.Effect<InputResponses, ClientError>
  readonly reply: (answers: InputResponses) => Effect.Effect<void, ClientError>
  /** The task cannot go on. */
  readonly failed: (error: ClientError) => void
  /** The server did not take an answer, or may not have: it has to be looked at how the task stands. */
  readonly unsure: () => void
}

// What is nested deeper than the stack has no digest: then the key alone counts.
const digestOf = (question: InputRequest): number => {
  try {
    return Hash.hash(question)
  } catch {
    return 0
  }
}

/** See the module's text. */
export class Questions {
  readonly #bounds: Bounds
  readonly #asking: Asking
  readonly #scope: Scope.Scope
  readonly #turns: Semaphore.Semaphore
  readonly #asked: Map<string, Asked>

  /** `asked` outlives the scope: what was answered once is not asked again by who follows the task next. */
  constructor(bounds: Bounds, asking: Asking, scope: Scope.Scope, asked: Map<string, Asked>) {
    this.#bounds = bounds
    this.#asking = asking
    this.#scope = scope
    this.#turns = Semaphore.makeUnsafe(bounds.questionConcurrency)
    this.#asked = asked
  }

  /** Takes what is open now. */
  take(questions: InputRequests): Effect.Effect<void, ClientError> {
    return Effect.suspend(() => {
      const entries = Object.entries(questions)
      const { maxQuestions, maxTaskQuestions } = this.#bounds
      if (entries.length > maxQuestions) {
        const message = `The task asks ${entries.length} questions at once, more than ${maxQuestions} (maxQuestions)`
        return Effect.fail(new ClientError({ reason: "Limit", method, message }))
      }
      const starting: Array<readonly [string, Asked, Effect.Effect<void>]> = []
      let count = this.#asked.size
      for (const [key, question] of entries) {
        const digest = digestOf(question)
        const asked = this.#asked.get(key)
        if (asked === undefined) {
          count++
          const fresh: Asked = { digest, fiber: undefined, answer: undefined, refused: undefined }
          starting.push([key, fresh, this.#answer(key, question, fresh)])
        } else if (asked.digest !== digest) {
          const message = `The task asks two different questions under the key ${quoted(key)}`
          return Effect.fail(new ClientError({ reason: "InvalidAnswer", method, message }))
        } else if (asked.refused !== undefined) {
          return Effect.fail(asked.refused)
        } else if (asked.answer !== undefined && asked.fiber === undefined) {
          starting.push([key, asked, this.#reply(asked)])
        }
      }
      if (count > maxTaskQuestions) {
        const message = `The task asks more than ${maxTaskQuestions} questions (maxTaskQuestions)`
        return Effect.fail(new ClientError({ reason: "Limit", method, message }))
      }
      this.#withdraw(questions)
      return Effect.forEach(starting, (start) => this.#start(...start), { discard: true })
    })
  }

  #answer(key: string, question: InputRequest, asked: Asked): Effect.Effect<void> {
    const asking = this.#turns.withPermit(this.#asking.ask(Object.fromEntries([[key, question]])))
    return Effect.matchEffect(asking, {
      onSuccess: (answer) => {
        asked.answer = answer
        return this.#reply(asked)
      },
      onFailure: (error) => Effect.sync(() => this.#asking.failed(error))
    })
  }

  /** What the server does not want to know any more need not be answered; it may ask for it again. */
  #withdraw(questions: InputRequests): void {
    for (const [key, asked] of this.#asked) {
      if (Object.hasOwn(questions, key) || asked.fiber === undefined || asked.answer !== undefined) continue
      asked.fiber.interruptUnsafe()
      this.#asked.delete(key)
    }
  }

  #start(key: string, asked: Asked, effect: Effect.Effect<void>): Effect.Effect<void> {
    this.#asked.set(key, asked)
    return Effect.map(Effect.forkIn(effect, this.#scope, { startImmediately: true }), (fiber) => {
      asked.fiber = fiber
      fiber.addObserver((exit) => {
        if (asked.fiber === fiber) asked.fiber = undefined
        // Nobody has answered: whoever follows the task next has to ask.
        const left = Exit.isFailure(exit) && asked.answer === undefined
        if (left && this.#asked.get(key) === asked) this.#asked.delete(key)
      })
    })
  }

  #reply(asked: Asked): Effect.Effect<void> {
    return Effect.matchEffect(this.#asking.reply(asked.answer!), {
      onSuccess: () =>
        Effect.sync(() => {
          asked.answer = undefined
        }),
      onFailure: (error) =>
        Effect.sync(() => {
          if (error.reason === "Protocol" && error.error?.reason !== "InternalError") asked.refused = error
          this.#asking.unsure()
        })
    })
  }
}

export type { Asked }
