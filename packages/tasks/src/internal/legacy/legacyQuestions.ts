/**
 * Asks the questions of tasks through the pending `tasks/result` requests of 2025-11-25.
 *
 * "The requestor should call `tasks/result` to receive input requests": the open questions of a task are sent on the
 * stream of such a request, all at once. Each question is asked by one request at a time: the last one whose client can
 * answer it. A client that has lost the stream of an earlier request sends another one, and the newest is the most
 * likely to be connected. A question is withdrawn where it was asked before, and when it was answered elsewhere, has
 * timed out, or its task has ended. When the request that asks a question ends, the request before it asks the
 * question.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { withRelated } from "@skein/protocol/LegacyTask"
import * as McpError from "@skein/protocol/McpError"
import type { RequestContext } from "@skein/runtime/RequestContext"
import type { RequestError } from "@skein/runtime/RequestError"
import * as Logging from "@skein/server/Logging"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { Question, State } from "../../TaskState.ts"
import { makeRefusal } from "../engine/taskRequest.ts"
import { canAsk } from "../protocol/inputCapability.ts"
import { noTimeout } from "../protocol/inlineCall.ts"
import type { TaskService } from "../protocol/taskService.ts"
import * as wire from "../protocol/wire.ts"
import { legacyRevision } from "./legacyNotifications.ts"

type Fork = (effect: Effect.Effect<void>) => Fiber.Fiber<void>

/** A pending `tasks/result`. */
class ResultRequest extends Data.Class<{ readonly request: RequestContext; readonly fork: Fork }> {
  /** The questions that its client is being asked, by key. */
  readonly asked = new Map<string, Fiber.Fiber<void>>()
  /** The keys of questions that could not be sent here, because of the transport. */
  readonly failed = new Set<string>()

  withdraw(key: string): void {
    const fiber = this.asked.get(key)
    this.asked.delete(key)
    fiber?.interruptUnsafe()
  }

  withdrawAll(): void {
    for (const key of [...this.asked.keys()]) this.withdraw(key)
  }
}

/**
 * Asks a question, encoded for this revision. An invalid answer is returned as it is: the handler of the task decodes
 * it.
 */
const ask = (
  request: RequestContext,
  state: State,
  question: Question
): Effect.Effect<JsonObject, McpError.McpError | RequestError> => {
  const { method, params } = wire.toInputRequest(state, question, legacyRevision)
  return Effect.map(
    request.request(method, withRelated(params as JsonObject | undefined, state.id), noTimeout),
    (answer) => Result.getOrElse(wire.toStoredAnswer(state, question, legacyRevision, answer), () => answer)
  )
}

/** The pending `tasks/result` requests of one task. */
class TaskQuestions extends Data.Class<{ readonly tasks: TaskService["Service"]; readonly created: State }> {
  readonly #requests: Array<ResultRequest> = []
  /** The questions that were answered here, while the state may still list them as open. */
  readonly #answered = new Set<string>()
  #state = this.created

  get isEmpty(): boolean {
    return this.#requests.length === 0
  }

  add(request: ResultRequest): void {
    this.#requests.push(request)
    this.#assign()
  }

  remove(request: ResultRequest): void {
    request.withdrawAll()
    this.#requests.splice(this.#requests.indexOf(request), 1)
    this.#assign()
  }

  /** Updates the state. Each request watches the task on its own, and the newest state counts. */
  update(state: State): void {
    if (state.version < this.#state.version) return
    this.#state = state
    for (const key of this.#answered) if (!this.#isOpen(key)) this.#answered.delete(key)
    this.#assign()
  }

  #isOpen(key: string): boolean {
    return this.#state.questions.some((question) => question.key === key)
  }

  #assign(): void {
    for (const request of this.#requests) {
      for (const key of [...request.asked.keys()]) if (!this.#isOpen(key)) request.withdraw(key)
    }
    for (const question of this.#state.questions) {
      const { key } = question
      if (this.#answered.has(key)) continue
      const selected = this.#requests.findLast(({ failed, request }) =>
        !failed.has(key) && canAsk(request.caller, question) && this.tasks.mayAnswer(request.caller, question)
      )
      for (const request of this.#requests) if (request !== selected) request.withdraw(key)
      if (selected !== undefined && !selected.asked.has(key)) this.#ask(selected, question)
    }
  }

  #ask(request: ResultRequest, question: Question): void {
    const state = this.#state
    const asking = Effect.matchEffect(Effect.suspend(() => ask(request.request, state, question)), {
      onSuccess: (answer) => this.#storeAnswer(request, question.key, answer),
      onFailure: (error) =>
        McpError.isMcpError(error)
          ? this.#storeAnswer(request, question.key, makeRefusal(McpError.toErrorObject(error, legacyRevision)))
          : this.#markFailed(request, question.key)
    })
    // The fiber is in `asked` before it runs, since it may fail immediately.
    const fiber = request.fork(Effect.andThen(Effect.yieldNow, asking))
    request.asked.set(question.key, fiber)
  }

  /** Stores an answer, even if the request that received it ends meanwhile. */
  #storeAnswer(request: ResultRequest, key: string, answer: JsonObject): Effect.Effect<void> {
    return Effect.uninterruptible(Effect.suspend(() => {
      request.asked.delete(key)
      this.#answered.add(key)
      return Effect.catch(
        Effect.asVoid(this.tasks.engine.answer(this.#state.id, key, answer)),
        (error) =>
          Effect.andThen(
            Logging.withheld(Effect.logError("failed to store the answer to a question of a task", error)),
            Effect.suspend(() => {
              this.#answered.delete(key)
              return this.#markFailed(request, key)
            })
          )
      )
    }))
  }

  #markFailed(request: ResultRequest, key: string): Effect.Effect<void> {
    return Effect.sync(() => {
      request.asked.delete(key)
      request.failed.add(key)
      this.#assign()
    })
  }
}

/**
 * Makes the function that lets a request ask the questions of a task until the scope closes. It returns a function that
 * takes each new state of the task.
 */
export const makeQuestions = (service: TaskService["Service"]) => {
  /** The tasks with pending `tasks/result` requests in this process. */
  const tasks = new Map<string, TaskQuestions>()
  return (state: State, request: RequestContext): Effect.Effect<(state: State) => void, never, Scope.Scope> =>
    Effect.flatMap(FiberSet.makeRuntime<never, void, never>(), (fork) =>
      Effect.map(
        Effect.acquireRelease(
          Effect.sync(() => {
            const questions = tasks.get(state.id) ?? new TaskQuestions({ tasks: service, created: state })
            tasks.set(state.id, questions)
            const resultRequest = new ResultRequest({ request, fork })
            questions.add(resultRequest)
            return { questions, resultRequest }
          }),
          ({ questions, resultRequest }) =>
            Effect.sync(() => {
              questions.remove(resultRequest)
              if (questions.isEmpty) tasks.delete(state.id)
            })
        ),
        ({ questions }) => (state) => questions.update(state)
      ))
}
