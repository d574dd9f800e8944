/**
 * Idempotent side effects of handlers that send input requests.
 *
 * In the stateless revision (2026-07-28) the server answers a request with its input requests. The client sends the
 * request again with the responses, and the handler runs again from its start. Code before an input request therefore
 * repeats in each round. `once` runs an effect in the first round only; its result travels with the request.
 *
 * @example
 * const order = Tool.layer(Tool.make("order"), () =>
 *   Effect.gen(function*() {
 *     const id = yield* once("reserve", Schema.String, reserve)
 *     const { sure } = yield* Elicitation.accepted(Elicitation.form(`Order ${id}?`, { sure: Schema.Boolean }))
 *     return sure ? "Ordered" : "Not ordered"
 *   }))
 */
import * as JsonForm from "@skein/protocol/JsonForm"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { InputError, Timeout } from "./InputError.ts"
import { roundOf } from "./internal/base/onceStore.ts"
import { mismatch } from "./internal/schema/jsonSchema.ts"

/** Options of `once`. */
export interface Options {
  /**
   * How long the effect may take: 1 minute by default. In the stateless revision the round does not end while the
   * effect runs.
   */
  readonly timeout?: Duration.Input | undefined
}

const minute = Duration.minutes(1)

const invalidResult = (name: string, problem: string): Error =>
  mismatch(`the result of ${name} does not match its schema`, problem)

/**
 * Runs an effect once for a request, however often its handler runs. The schema encodes the result as JSON and decodes
 * it in later rounds. In a session-based revision, where a handler runs once, the effect runs once per key too.
 *
 * - The key must be unique in the handler. In a loop, use a key for each iteration.
 * - Two concurrent calls with one key run the effect once and both receive the result. An effect that fails, dies or is
 *   interrupted is not recorded and runs again at the next call.
 * - The effect runs *at least* once. It runs again if the server crashes during it, or if the client sends the same
 *   round twice. For an effect that must run at most once, pass an idempotency key to the system that performs it.
 * - The result is part of the sealed `requestState`, so keep it small. The client can neither read nor forge it.
 * - An input request inside of the effect is a defect, and so is a nested `once` with the same key.
 *
 * Fails with `InputError` `Timeout` if the effect takes longer than `timeout`, and interrupts the effect.
 *
 * @example
 * const id = yield* once("reserve", Schema.String, reserve)
 */
export const once = <A, E, R>(
  key: string,
  schema: Schema.ConstraintCodec<A, unknown>,
  effect: Effect.Effect<A, E, R>,
  options: Options = {}
): Effect.Effect<A, E | InputError, R | McpRequest> =>
  Effect.flatMap(McpRequest, (request) => {
    const { caller: { revision } } = request
    const codec = Schema.toCodecJson(schema)
    const name = `once(${JSON.stringify(key)})`
    const round = roundOf(request)
    const encode = JsonForm.encodeWith(Schema.encodeUnknownResult(codec))
    const run = Effect.timeoutOrElse(
      Effect.flatMap(
        effect,
        (value) => {
          const encoded = encode(value)
          return Result.isSuccess(encoded)
            ? Effect.succeed(encoded.success)
            : Effect.die(invalidResult(name, encoded.failure.message))
        }
      ),
      {
        duration: options.timeout ?? minute,
        orElse: () => {
          const message = `${name} took longer than its timeout`
          return Effect.fail(new InputError({ reason: new Timeout({ message }), method: key, revision }))
        }
      }
    )
    return Effect.flatMap(round.once(key, run), (json) => {
      const value = Schema.decodeUnknownResult(codec)(json)
      if (Result.isSuccess(value)) {
        return Effect.succeed(value.success)
      }
      // An earlier round ran another version of the handler. The effect must not run twice.
      return Effect.die(new Error(`the result of ${name} in an earlier round does not match its schema`))
    })
  })

/**
 * @internal `once` for async handlers, which have no schema for the result. They receive its JSON form in each round. A
 * result that JSON cannot hold is a defect. `undefined` stays `undefined`.
 */
export const onceOfJson = <A, E, R>(
  key: string,
  effect: Effect.Effect<A, E, R>,
  options?: Options
): Effect.Effect<JsonForm.JsonForm<A>, E | InputError, R | McpRequest> =>
  Effect.map(
    once(key, Values, Effect.flatMap(effect, (value) => toJson(key, value)), options),
    ([value]) => value as JsonForm.JsonForm<A>
  )

/** A list of one value, or of none for `undefined`. */
const Values = Schema.Array(Schema.Unknown)

const toJson = (key: string, value: unknown): Effect.Effect<ReadonlyArray<unknown>> => {
  if (value === undefined) return Effect.succeed([])
  const form = JsonForm.make(value, "the result")
  return Result.isSuccess(form)
    ? Effect.succeed([form.success])
    : Effect.die(new TypeError(`once(${JSON.stringify(key)}) must return JSON: ${form.failure}`))
}
