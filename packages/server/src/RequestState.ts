/**
 * The state of requests that wait for answers of the client, in the request era (2026-07-28, "Multi Round-Trip Requests").
 *
 * What a handler was told so far travels with the request, as `requestState`: the client keeps it and sends it back, and the server
 * remembers nothing. It is sealed (AES-256-GCM), so that the client can neither read nor change it, and bound to the principal, to
 * the request with its params, and to an expiry. State that is changed, late, another one's or another request's is refused with
 * `-32602`, before any handler runs. **It is not single-use**: within its time a client may send it twice.
 *
 * By default each server makes a key of its own when it first needs one. That suits one process. **Behind a load balancer all
 * instances need the same keys**, and a server that is to know its state again after a restart needs them too:
 *
 * @example
 * const State = Layer.unwrap(Effect.map(Config.Redacted("STATE_KEY"), (key) => RequestState.layer({ keys: [key] })))
 * const Server = McpServer.layer({ name: "shop", version: "1.0.0" }, orders).pipe(Layer.provide(State))
 */
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

/** A secret: 32 bytes at least, or a text of 32 characters at least, of a random source (`openssl rand -base64 32`). */
export type Key = Uint8Array | string | Redacted.Redacted<string>

/** What is sealed with, and the bounds. */
export interface Options {
  /**
   * The first one seals, all of them open. To change the key, put the new one in the *second* place everywhere, then in the first
   * place, and leave the old one out after `timeToLive`. A random one by default.
   */
  readonly keys?: ReadonlyArray<Key> | undefined
  /**
   * How long the client has for the answers to one round: 10 minutes by default. Later ones are refused with `-32602`. The `timeout`
   * of a question, 10 minutes by default too, may end it before: for more time both have to be longer.
   */
  readonly ttl?: Duration.Input | undefined
  /** How often one request may be answered with questions: 16 by default. Then a question fails with `InputError` `Limit`. */
  readonly maxRounds?: number | undefined
  /**
   * How many characters `requestState` may have: 65,536 by default. It holds all answers so far and what `once` keeps, in base64.
   * A request whose state gets larger fails with `-32603` and a message that says so; one that comes with more is refused.
   */
  readonly maxStateChars?: number | undefined
}

/** A key that is too short to be one. */
export class RequestStateKeyError extends Data.TaggedError("RequestStateKeyError")<{ readonly message: string }> {}

/** How the servers that are built with it keep what waits for answers. */
export const RequestState = /* @__PURE__ */ Context.Reference<Options>("@skein/server/RequestState", {
  defaultValue: () => ({})
})

/** The bytes of a key. */
export const bytesOf = (key: Key): Uint8Array => {
  if (key instanceof Uint8Array) return key
  return new TextEncoder().encode(typeof key === "string" ? key : Redacted.value(key))
}

const least = 32

/** Sets keys and bounds for the servers that it is provided to. Fails with `KeyError` for a key of fewer than 32 bytes. */
export const layer = (options: Options): Layer.Layer<never, RequestStateKeyError> =>
  Layer.effect(
    RequestState,
    Effect.suspend(() => {
      const short = options.keys?.findIndex((key) => bytesOf(key).length < least) ?? -1
      if (short < 0) return Effect.succeed(options)
      const message = `Key ${short + 1} for the state of requests has fewer than ${least} bytes`
      return Effect.fail(new RequestStateKeyError({ message }))
    })
  )
