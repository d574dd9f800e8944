/**
 * Questions of a task: kept in its row until somebody answers, whatever happens to the process that asked.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import type { CallOptions } from "@skein/runtime/RequestContext"
import { Closed, RequestError, Timeout } from "@skein/runtime/RequestError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { fingerprint, patiently } from "./engineContext.ts"
import { misplaced } from "./places.ts"
import type { Run } from "./run.ts"
import { clockOf } from "./sleep.ts"
import type { Lost } from "../store/store.ts"
import { answered } from "./workflow.ts"

/** JSON in one form: the same text for the same value, whatever order its members came in. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, value: unknown) =>
    isObject(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => a < b ? -1 : 1))
      : value)

/**
 * What is asked, without what is made anew each time that the question is put: the id by which an address to visit is told to be done
 * (2025-11-25).
 */
const asked = (params: JsonObject | undefined): JsonObject | undefined => {
  if (params?.["elicitationId"] === undefined) return params
  const { elicitationId: _, ...rest } = params
  return rest
}

/**
 * What a question is known by, in each run: the key that was given, or what is asked; and how often it was asked before in this
 * run. It does not depend on the order of different questions.
 */
const keyOf = (
  run: Run,
  method: string,
  params: JsonObject | undefined,
  given: string | undefined
): Effect.Effect<string> =>
  Effect.map(
    given === undefined ? fingerprint(run.host, canonical([method, asked(params)])) : Effect.succeed(given),
    (name) => {
      let times = run.times.get(`question/${name}`) ?? 0
      let key = times === 0 ? name : `${name}.${times}`
      while (run.names.has(`question/${key}`)) key = `${name}.${++times}`
      run.times.set(`question/${name}`, times + 1)
      run.names.add(`question/${key}`)
      return key
    }
  )

/**
 * Asks, and gives the answer. Fails with `TimedOut` after the call's `timeout`, if it has one, and with `Closed` when the task
 * undoes what it has done. A question that loses a race is withdrawn, and loses it in each run: it is not answered any more, and
 * its time is not over either.
 */
export const ask = (
  run: Run,
  method: string,
  params: JsonObject | undefined,
  options: CallOptions | undefined
): Effect.Effect<JsonObject, RequestError> =>
  Effect.withFiber((fiber) => {
    const problem = misplaced(fiber, method)
    if (problem !== undefined) return problem
    if (run.undoing !== undefined) {
      const message = `The task undoes what it has done: ${method} was not sent`
      return Effect.fail(new RequestError({ reason: new Closed({ message }), method }))
    }
    const put = Effect.flatMap(
      run.hold(keyOf(run, method, params, options?.key)),
      (key) => waited(run, { key, method, params }, options?.timeout)
    )
    return options?.key === undefined ? put : alone(run, options.key, canonical([method, asked(params)]), put)
  })

/**
 * Lets nothing else be asked under a key that was given while this waits. Which of two is the first one would be another one in
 * another run, and the answer to one would be taken for the other's.
 */
const alone = <A, E>(run: Run, key: string, what: string, put: Effect.Effect<A, E>): Effect.Effect<A, E> => {
  const { names, times } = run
  const open = `open/${key}`
  const mine = `${open}/${what}`
  const count = times.get(open) ?? 0
  if (count > 0 && !names.has(mine)) {
    return Effect.die(
      new Error(`Two questions of this task wait for their answers under the key "${key}": give each its own`)
    )
  }
  times.set(open, count + 1)
  names.add(mine)
  return Effect.ensuring(
    put,
    Effect.sync(() => {
      const left = times.get(open)! - 1
      times.set(open, left)
      if (left === 0) names.delete(mine)
    })
  )
}

const waited = (
  run: Run,
  question: { readonly key: string; readonly method: string; readonly params: JsonObject | undefined },
  timeout: Duration.Input | undefined
): Effect.Effect<JsonObject, RequestError> => {
  const { host: { store }, work: { id } } = run
  const { key, method } = question
  const look = patiently(store.ask(id, question))
  const clock = timeout === undefined || Duration.toMillis(timeout) === Infinity
    ? undefined
    : clockOf(run, `timeout/${key}`, Math.ceil(Duration.toMillis(timeout)))
  const late = Effect.fail(
    new RequestError({ reason: new Timeout({ message: `No answer to ${method} in time` }), method })
  )
  /** Nobody can answer any more; but somebody may have, just now. */
  const expired = Effect.andThen(
    patiently(store.withdraw(id, key)),
    Effect.map(look, (answer) => answer === undefined ? late : known(answer))
  )
  const ended: Effect.Effect<Effect.Effect<JsonObject, RequestError> | undefined> = Effect.flatMap(look, (answer) => {
    if (answer !== undefined) return Effect.succeed(known(answer))
    if (clock === undefined) return Effect.undefined
    return Effect.flatMap(clock.rang, (rang) => rang ? expired : Effect.undefined)
  })
  const first = clock === undefined
    ? ended
    : Effect.tap(ended, (end) => end === undefined ? clock.set : Effect.void)
  const names = [answered(key).name, ...(clock === undefined ? [] : [clock.name])]
  const lost = (answered: boolean) => () => run.leaving ? Effect.void : patiently(store.lose(id, key, answered))
  // Of several that have come, the first one goes on first, as it did when it came.
  const rank = Effect.map(
    Effect.forEach(names, (name) => run.host.rank(run.executionId, name)),
    (ranks) => ranks.reduce((a, b) => a < b ? a : b)
  )
  // What has come while it waited is known to nobody yet. What it finds when it is put again may have won before.
  const waits = { events: names, rank }
  const wait = Effect.onInterrupt(run.parking.wait({ ...waits, awaits: names, look: ended }), lost(true))
  return Effect.flatMap(Effect.onInterrupt(run.hold(first), lost(false)), (end) => {
    if (end === undefined) return wait
    if (end !== never) return run.parking.wait({ ...waits, awaits: [], look: Effect.succeed(end) })
    run.history.pass(names)
    return end
  })
}

/** How a question ends that has lost. */
const never = Effect.never

const known = (answer: JsonObject | Lost): Effect.Effect<JsonObject> =>
  answer === "lost" ? never : Effect.succeed(answer)
