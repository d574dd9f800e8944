/**
 * `once` for async handlers, which have no schema for the result.
 */
import { isJson } from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { McpRequest } from "@skein/runtime/RequestContext"
import type { InputError } from "../../InputError.ts"
import { once, type Options } from "../../Once.ts"

/**
 * Runs an effect once per request: see `Once.once`. A result without a JSON form is a defect, because later rounds would
 * receive another value. `undefined` stays `undefined`.
 */
export const onceOfJson = <A, E, R>(
  key: string,
  effect: Effect.Effect<A, E, R>,
  options?: Options
): Effect.Effect<A, E | InputError, R | McpRequest> =>
  Effect.map(
    once(key, Result, Effect.flatMap(effect, (value) => toJson(key, value)), options),
    ([value]) => value as A
  )

/** A list of one value, or of none for `undefined`. */
const Result = Schema.Array(Schema.Unknown)

const toJson = (key: string, value: unknown): Effect.Effect<ReadonlyArray<unknown>> => {
  if (value === undefined) return Effect.succeed([])
  return isJson(value)
    ? Effect.succeed([value])
    : Effect.die(new TypeError(`once(${JSON.stringify(key)}) must return JSON: it was ${typeof value}`))
}
