/**
 * The operations of a state: where its value is, and how it changes. `State` describes them for authors.
 */
import { isJson } from "@skein/protocol/JsonRpc"
import { clip, quote } from "@skein/protocol/Text"
import { McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import * as Defaults from "@skein/runtime/Options"
import type * as ProcessLocal from "@skein/runtime/ProcessLocal"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import { Catalog } from "../../Catalog.ts"
import { internals } from "../catalog/catalogState.ts"
import { maxProblemChars } from "../schema/jsonSchema.ts"
import { isStandardSchema, type Later, settle, validateStandard } from "../schema/standardSchema.ts"
import * as owners from "./ownerOf.ts"
import { Anonymous, Conflict, InvalidValue, NoSession, StateError, TooLarge } from "../../StateError.ts"
import { makeMemory, StateStores, type Store, type Stored, type Stores } from "./stores.ts"

/** The type of a state, its owner and its bounds. */
export interface Options<A> {
  /**
   * The type of the value. It is stored as JSON. Without a schema the value must be JSON, and is not validated when it is
   * read.
   *
   * A schema of another library, such as `z.object({ … })`, validates values when they are written and when they are
   * read. It may fill in defaults, but it cannot encode: the values must be JSON, and the schema must accept the values
   * that it returns. Use an Effect Schema for dates and other types without a JSON form.
   */
  readonly schema?: Schema.ConstraintCodec<A, unknown> | StandardSchemaV1<unknown, A> | NoSchema | undefined
  /** The value before the first write. It is not stored. */
  readonly initial: A
  /** To whom a value belongs: `user` by default. */
  readonly scope?: "user" | "session" | undefined
  /** How long a value is valid after its last write: 24 hours by default. With `Infinity` it never expires. */
  readonly lifetime?: Duration.Input | undefined
  /** The size of a value, in bytes of JSON: 65,536 by default. A larger one fails: `StateError` `TooLarge`. */
  readonly maxBytes?: number | undefined
  /** The value of an anonymous caller, with the scope `user`: none by default, or that of its session. */
  readonly anonymous?: "fail" | "session" | undefined
  /** The value in the stateless revision, with the scope `session`: none by default, or one of the principal. */
  readonly stateless?: "fail" | "user" | undefined
}

/** A type that no schema has: it makes fields in the place of a schema a type error that names the mistake. */
export interface NoSchema {
  readonly [name: string]: "pass the schema of the whole value, such as Schema.Struct({ … }) or z.object({ … })"
}

/** Makes a schema that no state can have a type error that names the mistake. */
export type CheckedSchema<A, In> = [A] extends [In] ? unknown : {
  readonly schema: "The schema must accept the values that it returns: a state validates them again when it reads them"
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
  /** As `State.modify`. */
  readonly modify: <B>(change: (value: A) => readonly [result: B, value: A]) => Promise<B>
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
  const isOfSession = !ofUser || anonymous === "session"
  const shared = isOfSession ? owners.ofSharedSession(catalog, request) : undefined
  if (shared !== undefined) return Effect.succeed({ store: users, owner: shared.key })
  const session = isOfSession ? owners.ofSession(catalog, request) : undefined
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

/** Encodes and decodes the values of a state as JSON. */
export interface Codec<in out A> {
  readonly encode: (value: A) => Later<Result.Result<unknown, unknown>>
  readonly decode: (json: unknown) => Later<Result.Result<A, unknown>>
}

/** The codec of values without a schema. */
export const jsonCodec = <A>(): Codec<A> => ({ encode: asJson, decode: (json) => Result.succeed(json as A) })

/** The codec of values with a schema of another library. Throws for a value that is not a schema. */
export const standardCodec = <A>(name: string, schema: unknown): Codec<A> => {
  if (!isStandardSchema(schema)) {
    throw new TypeError(
      `The state ${quote(name)} has an invalid schema: expected an Effect Schema, or a schema of another library`
    )
  }
  const decode = (value: unknown) => settle(validateStandard<A>(schema as StandardSchemaV1<unknown, A>, value))
  return { encode: (value) => Effect.map(decode(value), Result.flatMap(asJson)), decode }
}

const asJson = (value: unknown): Result.Result<unknown, string> =>
  isJson(value) ? Result.succeed(value) : Result.fail("it has no JSON form")

/** Encodes and decodes values as JSON text. */
const textCodec = <A>(name: string, { maxBytes = 65_536 }: Options<A>, { decode, encode }: Codec<A>) => {
  const invalid = (problem: unknown) =>
    failWith(
      new InvalidValue({
        message: `The value of the state ${name} is invalid: ${clip(String(problem), maxProblemChars)}`
      })
    )
  return {
    write: (value: A): Effect.Effect<string, StateError> =>
      Effect.flatMap(settle(encode(value)), (encoded) => {
        if (Result.isFailure(encoded)) return invalid(encoded.failure)
        const text = JSON.stringify(encoded.success)
        return encoder.encode(text).byteLength > maxBytes
          ? failWith(new TooLarge({ message: `The state ${name} exceeds maxBytes (${maxBytes} bytes)` }))
          : Effect.succeed(text)
      }),
    read: ({ json }: Stored): Effect.Effect<A, StateError> =>
      Effect.flatMap(
        settle(decode(JSON.parse(json))),
        (decoded) => Result.isFailure(decoded) ? invalid(decoded.failure) : Effect.succeed(decoded.success)
      )
  }
}

/** The names of the states that this process has made, for the check of a server of several processes. */
const made = new Set<string>()

// More names are not needed in a message.
const maxMade = 10

/** The states of this process, unless the server has a store that several processes can share. */
export const statesInMemory = (catalog: Catalog["Service"]): ReadonlyArray<ProcessLocal.Part> => {
  const stores = Context.get(catalog[internals].base, StateStores)
  const isShared = stores !== undefined && !("removeOwner" in stores.users)
  return made.size === 0 || isShared ? [] : [{
    what: `the state in memory (${Array.from(made, (name) => quote(name)).join(", ")})`,
    remedy: "provide SqlStateStore.layer"
  }]
}

/** Makes a state whose values have a codec. */
export const makeState = <A>(name: string, options: Options<A>, values: Codec<A>): State<A> => {
  const { lifetime } = Defaults.resolve({ lifetime: options.lifetime }, {}, { lifetime: "24 hours" })
  const codec = textCodec(name, options, values)
  const scope = options.scope ?? "user"
  if (made.size < maxMade) made.add(name)

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
          if (yield* store.set(key, { json, expected: stored?.version, ttlMs: lifetime })) return result
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
