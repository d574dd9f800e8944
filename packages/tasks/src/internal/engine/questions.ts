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
import type { Question } from "../../TaskState.ts"
import { awaitStore, fingerprint } from "./engineContext.ts"
import type { Wait } from "./observations.ts"
import { misplacedWait } from "./placement.ts"
import type { Run } from "./run.ts"
import { timerEnd } from "./sleep.ts"
import type { EventKey } from "./taskLog.ts"

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
    (key) => {
      // A client may not have noticed that an equal question was withdrawn, when the task has begun again.
      const { continuation } = run.log
      const name = continuation === 0 ? key : `${key}@${continuation}`
      let count = run.counts.get(`question/${name}`) ?? 0
      let unused = count === 0 ? name : `${name}.${count}`
      while (run.names.has(`question/${unused}`)) unused = `${name}.${++count}`
      run.counts.set(`question/${name}`, count + 1)
      run.names.add(`question/${unused}`)
      return unused
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
    const problem = misplacedWait(fiber, method)
    if (problem !== undefined) return problem
    if (run.undoReason !== undefined) {
      const message = `${method} was not sent: a task cannot ask for input while it compensates`
      return Effect.fail(new RequestError({ reason: new Closed({ message }), method }))
    }
    const asked = Effect.flatMap(
      run.preventSuspension(questionKey(run, method, params, options?.key)),
      (key) => waitForAnswer(run, { key, method, params, to: options?.to }, options?.timeout)
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
  question: Question,
  timeout: Duration.Input | undefined
): Effect.Effect<JsonObject, RequestError> => {
  const { answers, engine: { store }, log, task: { id } } = run
  const { key, method } = question
  const answered: EventKey = { kind: "answer", name: key, attempt: 1 }
  const withdrawn: EventKey = { kind: "timeout", name: key, attempt: 1 }
  let deadline = Infinity
  const next = (event: EventKey): Effect.Effect<JsonObject, RequestError> => {
    const answer = answers.get(key)
    if (event.kind === "answer" && answer !== undefined && answer !== "lost") return Effect.succeed(answer)
    const message = `No answer to ${method} within its timeout`
    return Effect.fail(new RequestError({ reason: new Timeout({ message }), method }))
  }
  const readAnswer = Effect.map(
    Effect.suspend(() => awaitStore(store.ask(id, question, log.nextSeq - 1))),
    (answer) => {
      if (answer !== undefined) answers.set(key, answer)
      return answer
    }
  )
  const isLost = () => answers.get(key) === "lost"
  const wait: Wait<JsonObject, RequestError> = {
    events: [answered, withdrawn],
    // A question that has lost a race loses it in each run.
    dueAt: () => isLost() ? Infinity : answers.has(key) ? 0 : deadline,
    arrive: Effect.suspend((): Effect.Effect<EventKey | undefined> => {
      if (answers.has(key)) return Effect.succeed(answers.get(key) === undefined ? withdrawn : answered)
      // It may have been answered just before.
      return Effect.map(
        Effect.andThen(awaitStore(store.withdraw(id, key, log.nextSeq - 1)), readAnswer),
        (answer) => answer === undefined ? withdrawn : isLost() ? undefined : answered
      )
    }),
    next
  }
  const hasEnded = log.find(answered) !== undefined || log.find(withdrawn) !== undefined
  if (hasEnded) return run.observe(wait)
  const asked = Effect.gen(function*() {
    if (!answers.has(key)) {
      yield* readAnswer
      if (!answers.has(key)) run.trace?.event("question open", { name: key, method })
    }
    const milliseconds = timeout === undefined ? Infinity : Math.ceil(Duration.toMillis(timeout))
    if (milliseconds < Infinity) deadline = yield* timerEnd(run, `timeout/${key}`, milliseconds)
  })
  // The handler does not observe an answer that arrives after it has lost a race, so the answer is discarded.
  return Effect.onInterrupt(
    run.startNew(answered, Effect.andThen(run.preventSuspension(asked), run.observe(wait))),
    () =>
      run.isEnding || run.isCollecting || log.find(answered) !== undefined
        ? Effect.void
        : awaitStore(store.markLost(id, key, true, log.nextSeq - 1))
  )
}
