/**
 * The state of requests that wait for responses of the client, in the stateless revision (2026-07-28, "Multi Round-Trip
 * Requests").
 *
 * The responses so far travel with the request, as `requestState`. The client stores it and sends it back, so the
 * server stores nothing. The state is encrypted and authenticated (AES-256-GCM): the client can neither read nor change
 * it. It is bound to the principal, to the method and params of the request, and to an expiry. State that is altered,
 * expired, or belongs to another principal or request is refused with `-32602` before any handler runs. **The state is
 * not single-use**: until it expires, a client may send it twice.
 *
 * Each server generates a random key when it first needs one. That suffices for one process. **Behind a load balancer
 * all instances need the same keys**, and so does a server whose pending requests must survive a restart. Set the variable
 * `SKEIN_STATE_KEYS` of `NodeHttp.runMain`, or the keys of the layer:
 *
 * @example
 * const State = Layer.unwrap(Effect.map(Config.Redacted("STATE_KEY"), (key) => RequestState.layer({ keys: [key] })))
 * const Server = McpServer.layer({ name: "shop", version: "1.0.0" }, orders).pipe(Layer.provide(State))
 */
import * as PrintableError from "@skein/protocol/PrintableError"
import * as Defaults from "@skein/runtime/Options"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

/**
 * A secret of at least 32 bytes, or a text of at least 32 bytes in UTF-8, from a random source (`openssl rand -base64
 * 32`).
 */
export type Key = Uint8Array | string | Redacted.Redacted<string>

/** The keys and the bounds. */
export interface Options {
  /**
   * The first key encrypts; all keys decrypt. To rotate, add the new key in *second* place on every instance, then move
   * it to first place, and remove the old key after `lifetime`. One random key by default.
   */
  readonly keys?: ReadonlyArray<Key> | undefined
  /**
   * How long the client has for the responses of one round: 10 minutes by default. Later ones are refused with
   * `-32602`. The `timeout` of an input request, 10 minutes by default too, may end the wait earlier. To allow people
   * more time, raise both.
   */
  readonly lifetime?: Duration.Input | undefined
  /**
   * How often a request may be answered with input requests: 16 by default. The next one fails with `InputError`
   * `LimitExceeded`. Raise it for a handler that asks in a loop, as an agent does with `Sampling`.
   */
  readonly maxRounds?: number | undefined
  /**
   * The largest `requestState` in characters: 65,536 by default. It contains all responses so far and the results of
   * `once`, in base64. A request whose state becomes larger fails with `-32603` and a message with the sizes. A request
   * that arrives with more is refused with `-32602`. Raise it for handlers that keep large results.
   */
  readonly maxChars?: number | undefined
}

/** A key is shorter than 32 bytes. */
export class KeyTooShort extends PrintableError.tagged("KeyTooShort")<{
  /** The index of the key in `keys`. */
  readonly index: number
}> {}

/** A key that cannot be used. The `reason` is a tagged error, for `Effect.catchReason`. */
export class RequestStateKeyError extends PrintableError.withReason("RequestStateKeyError")<{
  readonly reason: KeyTooShort
}> {}

/** @internal Fills in the defaults of the bounds. */
export const resolve = ({ lifetime, maxChars, maxRounds }: Options): Defaults.Resolved<Omit<Options, "keys">> =>
  Defaults.resolve(
    { lifetime, maxChars, maxRounds },
    { maxChars: 65_536, maxRounds: 16 },
    { lifetime: "10 minutes" }
  )

/** The keys and bounds of the servers that are built with it. Set it with `layer`. */
export const RequestState = /* @__PURE__ */ Context.Reference<Options>("@skein/server/RequestState", {
  defaultValue: () => ({})
})

/** @internal Returns the bytes of a key. */
export const bytesOf = (key: Key): Uint8Array => {
  if (key instanceof Uint8Array) return key
  return new TextEncoder().encode(typeof key === "string" ? key : Redacted.value(key))
}

/** @internal */
export const minKeyBytes = 32

/** @internal Fails for a key that is too short. */
export const checkKeys = (keys: ReadonlyArray<Key> = []): Effect.Effect<void, RequestStateKeyError> =>
  Effect.suspend(() => {
    const index = keys.findIndex((key) => bytesOf(key).length < minKeyBytes)
    if (index < 0) return Effect.void
    const message = `RequestState key ${index + 1} has fewer than ${minKeyBytes} bytes`
    return Effect.fail(new RequestStateKeyError({ reason: new KeyTooShort({ message, index }) }))
  })

/**
 * Sets the keys and bounds of the servers that it is provided to. Without `keys` these are those of `SKEIN_STATE_KEYS`, where
 * `NodeHttp.runMain` runs the server. Fails with `RequestStateKeyError` `KeyTooShort` for a
 * key of fewer than 32 bytes.
 *
 * @example
 * McpServer.layer({ name: "shop", version: "1.0.0" }, orders).pipe(
 *   Layer.provide(RequestState.layer({ lifetime: "1 hour" }))
 * )
 */
export const layer = (options: Options): Layer.Layer<never, RequestStateKeyError> =>
  Layer.effect(
    RequestState,
    Effect.andThen(
      checkKeys(options.keys),
      Effect.map(RequestState, ({ keys }) => options.keys === undefined ? { ...options, keys } : options)
    )
  )
