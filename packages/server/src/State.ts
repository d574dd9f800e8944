/**
 * State of users and sessions: values that handlers read and change, and that stay between requests.
 *
 * A state is a definition, as a tool is. Its value belongs to the user of a request, which is the authenticated
 * principal, or to the session. Nobody else can read or change it: the owner comes from the transport, and nothing in a
 * message can set it. Values are stored in memory until another store is provided: see `StateStore`.
 *
 * | The request                   | `scope: "user"`                                         | `scope: "session"`                                            |
 * | ----------------------------- | ------------------------------------------------------- | ------------------------------------------------------------- |
 * | in a session, with a principal | the value of the principal                              | the value of the session                                      |
 * | in a session, anonymous       | `StateError` `Anonymous`; with `anonymous: "session"` the value of the session | the value of the session               |
 * | stateless, with a principal   | the value of the principal                              | `StateError` `NoSession`; with `stateless: "user"` a value of the principal |
 * | stateless, anonymous          | `StateError` `Anonymous`                                | `StateError` `NoSession`                                      |
 *
 * In the stateless revision a handler runs again in each round of input requests, and so do its updates. Wrap an update
 * before an input request in `once`.
 *
 * @example
 * const cart = State.make("cart", { schema: Schema.Array(Schema.String), initial: [] })
 * const add = Tool.layer(Tool.make("add", { input: { item: Schema.String } }), ({ item }) =>
 *   Effect.map(cart.update((items) => [...items, item]), (items) => `${items.length} items`))
 * const show = Tool.async(Tool.make("show"), async (_, { state }) => (await state(cart).get()).join("\n"))
 */
import { isJson } from "@skein/protocol/JsonRpc"
import { McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Catalog } from "./Catalog.ts"
import { internals } from "./internal/catalogState.ts"
import * as owners from "./internal/dispatch/ownerOf.ts"
import { Anonymous, Conflict, InvalidValue, NoSession, StateError, TooLarge } from "./StateError.ts"
import { makeMemory, StateStores, type Store, type Stored, type Stores } from "./StateStore.ts"

/** The type of a state, its owner and its bounds. */
export interface Options<A> {
  /**
   * The type of the value. It is stored as JSON. Without a schema the value must be JSON, and is not validated when it is
   * read.
   */
  readonly schema?: Schema.ConstraintCodec<A, unknown> | undefined
  /** The value before the first write. It is not stored. */
  readonly initial: A
  /** To whom a value belongs: `user` by default. */
  readonly scope?: "user" | "session" | undefined
  /** How long a value is valid after its last write: 24 hours by default. With `Infinity` it never expires. */
  readonly ttl?: Duration.Input | undefined
  /** The size of a value, in bytes of JSON: 65,536 by default. A larger one fails: `StateError` `TooLarge`. */
  readonly maxBytes?: number | undefined
  /** The value of an anonymous caller, with the scope `user`: none by default, or that of its session. */
  readonly anonymous?: "fail" | "session" | undefined
  /** The value in the stateless revision, with the scope `session`: none by default, or one of the principal. */
  readonly stateless?: "fail" | "user" | undefined
}

/** The services that operations need. Every handler has them. */
export type Services = McpRequest | Catalog

/** A state. Every operation fails with `StateError`. */
export interface State<A> {
  readonly name: string
  /** Returns the value of the owner, or the initial one. */
  readonly get: Effect.Effect<A, StateError, Services>
  /** Writes a value. */
  readonly set: (value: A) => Effect.Effect<void, StateError, Services>
  /**
   * Changes the value in one step, and returns the new one. The function may run several times if requests of one owner
   * change the value concurrently, so it must have no effects. It fails with `Conflict` after 100 attempts.
   *
   * @example
   * const total = count.update((n) => n + 1)
   */
  readonly update: (change: (value: A) => A) => Effect.Effect<A, StateError, Services>
  /** As `update`, and returns another result. */
  readonly modify: <B>(change: (value: A) => readonly [result: B, value: A]) => Effect.Effect<B, StateError, Services>
  /** Removes the value, so that the state has the initial one again. */
  readonly remove: Effect.Effect<void, StateError, Services>
}

/** The operations of a state for async handlers: `HandlerContext.state`. */
export interface AsyncState<A> {
  readonly get: () => Promise<A>
  readonly set: (value: A) => Promise<void>
  /** As `State.update`. */
  readonly update: (change: (value: A) => A) => Promise<A>
  readonly remove: () => Promise<void>
}

const maxAttempts = 100

const encoder = new TextEncoder()

const failWith = (reason: StateError["reason"]): Effect.Effect<never, StateError> =>
  Effect.fail(new StateError({ reason }))

/** The stores of servers without one of the layers of `StateStore`. */
const defaults = new WeakMap<object, Stores>()

const storesOf = (catalog: Catalog["Service"]): Effect.Effect<Stores> =>
  Effect.map(StateStores, (provided) => {
    if (provided !== undefined) return provided
    const known = defaults.get(catalog[internals])
    if (known !== undefined) return known
    const store = makeMemory()
    const made = { users: store, sessions: store }
    defaults.set(catalog[internals], made)
    return made
  })

/** The place of a value. */
interface Place {
  readonly store: Store
  readonly owner: string
}

const placeOf = (
  name: string,
  { anonymous, scope, stateless }: Options<never>,
  catalog: Catalog["Service"],
  request: RequestContext,
  { sessions, users }: Stores
): Effect.Effect<Place, StateError> => {
  const { principal } = request.caller
  const ofUser = scope !== "session"
  if (principal !== undefined && ofUser) {
    return Effect.succeed({ store: users, owner: owners.ofPrincipal(principal.id).key })
  }
  const session = ofUser && anonymous !== "session" ? undefined : owners.ofSession(catalog, request)
  if (session !== undefined) {
    const release = owners.whenGone(sessions, session, () => sessions.removeOwner(session.key))
    return Effect.as(release, { store: sessions, owner: session.key })
  }
  if (ofUser) {
    return failWith(new Anonymous({ message: `The state ${name} belongs to a user, and the caller is anonymous` }))
  }
  return principal !== undefined && stateless === "user"
    ? Effect.succeed({ store: users, owner: owners.ofPrincipal(principal.id).key })
    : failWith(new NoSession({ message: `The state ${name} belongs to a session, and the request has none` }))
}

/** Encodes and decodes values as JSON text. */
const codecOf = <A>(name: string, { maxBytes = 65_536, schema }: Options<A>) => {
  const codec = schema === undefined ? undefined : Schema.toCodecJson(schema)
  const encode = codec === undefined ? undefined : Schema.encodeUnknownResult(codec)
  const decode = codec === undefined ? undefined : Schema.decodeUnknownResult(codec)
  const invalid = (problem: string) =>
    failWith(new InvalidValue({ message: `The value of the state ${name} is invalid: ${problem}` }))
  return {
    write: (value: A): Effect.Effect<string, StateError> => {
      const encoded: Result.Result<unknown, unknown> = encode?.(value) ??
        (isJson(value) ? Result.succeed(value) : Result.fail("it has no JSON form"))
      if (Result.isFailure(encoded)) return invalid(String(encoded.failure))
      const json = JSON.stringify(encoded.success)
      return encoder.encode(json).byteLength > maxBytes
        ? failWith(new TooLarge({ message: `The state ${name} exceeds maxBytes (${maxBytes} bytes)` }))
        : Effect.succeed(json)
    },
    read: ({ json }: Stored): Effect.Effect<A, StateError> => {
      const value: unknown = JSON.parse(json)
      const decoded = decode?.(value) ?? Result.succeed(value as A)
      return Result.isFailure(decoded) ? invalid(String(decoded.failure)) : Effect.succeed(decoded.success)
    }
  }
}

/**
 * Defines a state. The name must be unique in a server: two states of one scope and name share their values. If the
 * schema changes so that a stored value does not match, operations fail with `InvalidValue`, and `remove` repairs it.
 *
 * @example
 * const seen = State.make("seen", { schema: Schema.Int, initial: 0, scope: "session" })
 */
export const make = <A>(name: string, options: Options<A>): State<A> => {
  const ttlMs = Duration.toMillis(Duration.fromInputUnsafe(options.ttl ?? "24 hours"))
  const codec = codecOf(name, options)
  const scope = options.scope ?? "user"

  const withPlace = <B>(use: (place: Place) => Effect.Effect<B, StateError>): Effect.Effect<B, StateError, Services> =>
    Effect.gen(function*() {
      const request = yield* McpRequest
      const catalog = yield* Catalog
      const place = yield* placeOf(name, options as Options<never>, catalog, request, yield* storesOf(catalog))
      return yield* use(place)
    })

  /** Writes the value that `next` makes of the stored one, until no other request has changed it meanwhile. */
  const write = <B>(
    next: (stored: Stored | undefined) => Effect.Effect<readonly [result: B, value: A], StateError>
  ): Effect.Effect<B, StateError, Services> =>
    withPlace(({ owner, store }) => {
      const key = { owner, scope, name }
      const attempt = (left: number): Effect.Effect<B, StateError> =>
        Effect.gen(function*() {
          const stored = yield* store.get(key)
          const [result, value] = yield* next(stored)
          const json = yield* codec.write(value)
          if (yield* store.set(key, { json, expected: stored?.version, ttlMs })) return result
          if (left > 1) return yield* Effect.andThen(Effect.yieldNow, attempt(left - 1))
          const message = `The state ${name} was changed by others each time: ${maxAttempts} attempts failed`
          return yield* failWith(new Conflict({ message }))
        })
      return attempt(maxAttempts)
    })

  const modify: State<A>["modify"] = (change) =>
    write((stored) => Effect.map(stored === undefined ? Effect.succeed(options.initial) : codec.read(stored), change))

  return {
    name,
    get: withPlace(({ owner, store }) =>
      Effect.flatMap(
        store.get({ owner, scope, name }),
        (stored) => stored === undefined ? Effect.succeed(options.initial) : codec.read(stored)
      )
    ),
    // Without reading the earlier value, which may not match the schema.
    set: (value) => write(() => Effect.succeed([undefined, value])),
    update: (change) =>
      modify((value) => {
        const changed = change(value)
        return [changed, changed]
      }),
    modify,
    remove: withPlace(({ owner, store }) => store.remove({ owner, scope, name }))
  }
}
