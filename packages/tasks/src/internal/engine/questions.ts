/**
 * The questions of a task: requests for input that the store keeps until they are answered, independently of the
 * process that asked.
 */
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { CallOptions } from "@skein/runtime/RequestContext"
import { Closed, RequestError, Timeout } from "@skein/runtime/RequestError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Lost } from "../store/store.ts"
import { awaitStore, fingerprint } from "./engineContext.ts"
import { misplacedInStep, type Run } from "./run.ts"
import { timerOf } from "./sleep.ts"
import { answerSignal } from "./workflow.ts"

/**
 * The params that identify a question: without the `elicitationId` of a URL elicitation (2025-11-25), which is new each
 * time that the question is asked.
 */
const stableParams = (params: JsonObject | undefined): JsonObject | undefined => {
  if (params?.["elicitationId"] === undefined) return params
  const { elicitationId: _, ...rest } = params
  return rest
}

/**
 * The key of a question, the same in each run: the key that the handler gave, or a fingerprint of the question; with a
 * number if the run has used it before. It does not depend on the order of different questions.
 */
const questionKey = (
  run: Run,
  method: string,
  params: JsonObject | undefined,
  given: string | undefined
): Effect.Effect<string> =>
  Effect.map(
    given === undefined
      ? fingerprint(run.engine, CanonicalJson.stringify([method, stableParams(params)]))
      : Effect.succeed(given),
    (name) => {
      let count = run.counts.get(`question/${name}`) ?? 0
      let key = count === 0 ? name : `${name}.${count}`
      while (run.names.has(`question/${key}`)) key = `${name}.${++count}`
      run.counts.set(`question/${name}`, count + 1)
      run.names.add(`question/${key}`)
      return key
    }
  )

/**
 * Asks a question and returns its answer. Fails with `Timeout` after the `timeout` of the call, if it has one, and
 * with `Closed` while the task compensates. A question that loses a race is withdrawn, and loses the race in each run:
 * it can no longer be answered or time out.
 */
export const ask = (
  run: Run,
  method: string,
  params: JsonObject | undefined,
  options: CallOptions | undefined
): Effect.Effect<JsonObject, RequestError> =>
  Effect.withFiber((fiber) => {
    const problem = misplacedInStep(fiber, method)
    if (problem !== undefined) return problem
    if (run.undoReason !== undefined) {
      const message = `${method} was not sent: a task cannot ask for input while it compensates`
      return Effect.fail(new RequestError({ reason: new Closed({ message }), method }))
    }
    const asked = Effect.flatMap(
      run.preventSuspension(questionKey(run, method, params, options?.key)),
      (key) => waitForAnswer(run, { key, method, params }, options?.timeout)
    )
    return options?.key === undefined
      ? asked
      : exclusively(run, options.key, CanonicalJson.stringify([method, stableParams(params)]), asked)
  })

/**
 * Dies if another question waits under the same given key. The order of the two could differ in another run, and each
 * would receive the answer to the other.
 */
const exclusively = <A, E>(
  run: Run,
  key: string,
  question: string,
  asked: Effect.Effect<A, E>
): Effect.Effect<A, E> => {
  const { counts, names } = run
  const open = `open/${key}`
  const name = `${open}/${question}`
  const count = counts.get(open) ?? 0
  if (count > 0 && !names.has(name)) {
    return Effect.die(
      new Error(`two questions of this task wait under the key "${key}": give each question its own key`)
    )
  }
  counts.set(open, count + 1)
  names.add(name)
  return Effect.ensuring(
    asked,
    Effect.sync(() => {
      const remaining = counts.get(open)! - 1
      counts.set(open, remaining)
      if (remaining === 0) names.delete(name)
    })
  )
}

const waitForAnswer = (
  run: Run,
  question: { readonly key: string; readonly method: string; readonly params: JsonObject | undefined },
  timeout: Duration.Input | undefined
): Effect.Effect<JsonObject, RequestError> => {
  const { engine: { rank: rankOf, store }, executionId, history, suspension, task: { id } } = run
  const { key, method } = question
  const readAnswer = awaitStore(store.ask(id, question))
  const timer = timeout === undefined || Duration.toMillis(timeout) === Infinity
    ? undefined
    : timerOf(run, `timeout/${key}`, Math.ceil(Duration.toMillis(timeout)))
  const timedOut = Effect.fail(
    new RequestError({ reason: new Timeout({ message: `No answer to ${method} within its timeout` }), method })
  )
  /** Withdraws the question. It may have been answered just before. */
  const expired = Effect.andThen(
    awaitStore(store.withdraw(id, key)),
    Effect.map(readAnswer, (answer) => answer === undefined ? timedOut : endWith(answer))
  )
  const ended: Effect.Effect<Effect.Effect<JsonObject, RequestError> | undefined> = Effect.flatMap(
    readAnswer,
    (answer) => {
      if (answer !== undefined) return Effect.succeed(endWith(answer))
      if (timer === undefined) return Effect.undefined
      return Effect.flatMap(timer.hasFired, (hasFired) => hasFired ? expired : Effect.undefined)
    }
  )
  const firstCheck = timer === undefined
    ? ended
    : Effect.tap(ended, (end) => end === undefined ? timer.set : Effect.void)
  const names = [answerSignal(key).name, ...(timer === undefined ? [] : [timer.name])]
  const markLost = (isAnswered: boolean) => () =>
    run.isEnding ? Effect.void : awaitStore(store.markLost(id, key, isAnswered))
  // An answered question whose time is also over continues with the event that came first, as in the first run.
  const rank = Effect.map(
    Effect.forEach(names, (name) => rankOf(executionId, name)),
    (ranks) => ranks.reduce((a, b) => a < b ? a : b)
  )
  const events = { events: names, rank }
  // The handler does not know an answer that arrives during the wait, so a lost race discards it. An answer that the
  // first check finds may have won a race in an earlier run, so it stays.
  const wait = Effect.onInterrupt(suspension.wait({ ...events, deferreds: names, check: ended }), markLost(true))
  return Effect.flatMap(Effect.onInterrupt(run.preventSuspension(firstCheck), markLost(false)), (end) => {
    if (end === undefined) return wait
    if (end !== neverAnswered) return suspension.wait({ ...events, deferreds: [], check: Effect.succeed(end) })
    history.markReached(names)
    return end
  })
}

/** The end of a question that has lost a race. */
const neverAnswered = Effect.never

const endWith = (answer: JsonObject | Lost): Effect.Effect<JsonObject> =>
  answer === "lost" ? neverAnswered : Effect.succeed(answer)
