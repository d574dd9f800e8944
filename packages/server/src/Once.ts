/**
 * Side effects of a handler that asks the client.
 *
 * In the request era (2026-07-28) nobody can be asked while a request is handled: the request is answered with the questions, and
 * comes again with the answers, and the handler runs again from its start. What stands before a question thus happens again in
 * each round. `once` is for what must not: it runs in the first round that comes to it, and its result travels with the request.
 *
 * @example
 * const order = Tool.layer(Tool.make("order"), () =>
 *   Effect.gen(function*() {
 *     const id = yield* once("reserve", Schema.String, reserve)
 *     const { sure } = yield* Elicitation.accepted(Elicitation.form(`Order ${id}?`, { sure: Schema.Boolean }))
 *     return sure ? "Ordered" : "Left alone"
 *   }))
 */
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { InputError } from "./InputError.ts"
import { OnceStore } from "./internal/input/onceStore.ts"

/** How an effect is run once. */
export interface Options {
  /** How long it may take: one minute by default. While it runs, the request era's questions wait. */
  readonly timeout?: Duration.Input | undefined
}

const minute = Duration.minutes(1)

/**
 * Runs an effect once for a request, however often its handler runs; the schema writes its result as JSON, and reads it in the
 * rounds after. In the session era, where a handler runs once, it runs once per key all the same.
 *
 * - The key is unique in the handler: give what happens in a loop a key for each turn.
 * - Two that run at the same time with one key run once, and both get the result. An effect that fails, dies or is interrupted is
 *   not remembered, and runs again when it is asked for again.
 * - It is *at least* once: when the server crashes, or the client never sends the request again, or sends one round twice, there
 *   is nobody who remembers. What must happen at most once needs a key that whoever does it compares (an idempotency key).
 * - The result is part of the sealed `requestState`: keep it small. It is secret from the client, and cannot be forged by it.
 * - A question inside of it is a defect, and so is a `once` inside of one with the same key.
 *
 * Fails with `InputError` `TimedOut` when the effect takes longer than `timeout`; it is interrupted then.
 */
export const once = <A, E, R>(
  key: string,
  schema: Schema.ConstraintCodec<A, unknown>,
  effect: Effect.Effect<A, E, R>,
  options: Options = {}
): Effect.Effect<A, E | InputError, R | McpRequest> =>
  Effect.flatMap(McpRequest, (exchange) => {
    const { caller: { revision } } = exchange
    const codec = Schema.toCodecJson(schema)
    const round = exchange.round ??= exchange.rounds?.(exchange) ?? new OnceStore(exchange)
    const encode = Schema.encodeUnknownEffect(codec)
    const run = Effect.timeoutOrElse(Effect.flatMap(effect, (value) => Effect.orDie(encode(value))), {
      duration: options.timeout ?? minute,
      orElse: () => {
        const message = `once(${JSON.stringify(key)}) took too long`
        return Effect.fail(new InputError({ reason: "TimedOut", method: key, message, revision }))
      }
    })
    return Effect.flatMap(round.once(key, run), (json) => {
      const value = Schema.decodeUnknownResult(codec)(json)
      if (Result.isSuccess(value)) return Effect.succeed(value.success)
      // Left by a round before that another version of the handler has run: what it did must not be done twice.
      return Effect.die(new Error(`once(${JSON.stringify(key)}) has run, but left what its schema does not read`))
    })
  })
