/**
 * Values that live as long as a session: a browser, a checkout of a repository, a connection to a database.
 *
 * A value is acquired when a handler of the session first needs it. All handlers of the session share it, and it is
 * released when the session ends, however it ends: the client deletes it or disconnects, it is idle for too long, the
 * server stops. A handler that still uses the value delays the release until it ends. The server waits for a release as
 * for any finalizer of a session, at most 5 seconds.
 *
 * | The request                                        | The value                                                       |
 * | -------------------------------------------------- | --------------------------------------------------------------- |
 * | in a session                                       | of the session                                                  |
 * | stateless (2026-07-28), over stdio or in memory    | of the connection                                               |
 * | stateless, over HTTP, with a principal             | `StateError` `NoSession`; with `stateless: "user"` one of the principal, released when it was not used for `idleTimeout` |
 * | stateless, over HTTP, anonymous                    | `StateError` `NoSession`; with `stateless: "user"` `Anonymous`  |
 *
 * In a fleet each node that handles a session has a value of its own, unless `sessions` of `Http.Options` is `"home"`.
 *
 * For data, which a server may store and reload, see `State`.
 *
 * @example
 * const browser = PerSession.make("browser", { acquire: Effect.acquireRelease(launch, close), max: 20 })
 * const open = Tool.layer(Tool.make("open", { input: { url: Schema.String } }), ({ url }) =>
 *   browser.use((browser) => titleOf(browser, url)))
 */
import { KeyedCounter } from "@skein/runtime/KeyedCounter"
import { McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as RcMap from "effect/RcMap"
import * as Scope from "effect/Scope"
import { Catalog } from "./Catalog.ts"
import type { HandlerError } from "./HandlerError.ts"
import { internals } from "./internal/catalog/catalogState.ts"
import { attempt } from "./internal/base/attempt.ts"
import * as owners from "./internal/state/ownerOf.ts"
import type { Services } from "./State.ts"
import { Anonymous, Full, NoSession, StateError } from "./StateError.ts"

/** The owners and the bounds of the values. */
export interface Options {
  /** The value of a stateless request over HTTP, which has no session: none by default, or one of the principal. */
  readonly stateless?: "fail" | "user" | undefined
  /**
   * With `stateless: "user"`, how long the value of a principal stays after its last use: 5 minutes by default. The values
   * of sessions and connections stay until these end.
   */
  readonly idleTimeout?: Duration.Input | undefined
  /** How many values a server has at a time: 1,000 by default. A request that needs one more fails: `StateError` `Full`. */
  readonly max?: number | undefined
  /**
   * How many of them one principal has, with all of its sessions: 100 by default. A request that needs one more fails:
   * `StateError` `Full`.
   */
  readonly maxPerPrincipal?: number | undefined
}

/** A value of each session. `E` and `R` are the errors and the services of its acquisition. */
export interface PerSession<A, E = never, R = never> {
  readonly name: string
  /**
   * Returns the value of the session of the current request, and acquires it if there is none. It is not released before
   * the scope closes. If the acquisition fails, this fails with its error, and the next call tries again. If all
   * requests that wait for the acquisition are cancelled, it is interrupted.
   */
  readonly get: Effect.Effect<A, E | StateError, R | Services | Scope.Scope>
  /** Calls a function with the value, which is not released before the effect of the function ends. */
  readonly use: <B, E2, R2>(
    run: (value: A) => Effect.Effect<B, E2, R2>
  ) => Effect.Effect<B, E | E2 | StateError, R | Services | Exclude<R2, Scope.Scope>>
}

/** The values of one server. */
interface Held<A, E> {
  readonly map: RcMap.RcMap<string, A, E | StateError>
  /** The scopes of the sessions and connections that retain a value. */
  readonly retaining: WeakSet<Scope.Scope>
}

const principalPrefix = owners.ofPrincipal("").key

const failWith = (reason: StateError["reason"]): Effect.Effect<never, StateError> =>
  Effect.fail(new StateError({ reason }))

/**
 * Defines a value of each session. `acquire` runs in a scope of its own, which closes with the session, and has the
 * services of the handler that needs the value first.
 *
 * @example
 * const folder = PerSession.make("folder", { acquire: FileSystem.makeTempDirectoryScoped() })
 * const save = Tool.layer(Tool.make("save", { input: { text: Schema.String } }), ({ text }) =>
 *   folder.use((path) => write(path, text)))
 */
export const make = <A, E = never, R = never>(
  name: string,
  options: Options & { readonly acquire: Effect.Effect<A, E, R> }
): PerSession<A, E, Exclude<R, Scope.Scope>> => {
  const { acquire, idleTimeout = "5 minutes", max = 1000, maxPerPrincipal = 100, stateless } = options
  owners.reportPerSession(name)
  const servers = new WeakMap<object, Held<A, E>>()

  /** Makes the effect that counts a value, also for its principal, until it is released. */
  const makeCount = () => {
    const counter = new KeyedCounter()
    return Effect.flatMap(McpRequest, ({ caller: { principal } }) => {
      const id = principal?.id
      const bound = counter.acquire(id, max, maxPerPrincipal)
      if (bound === undefined) return Effect.addFinalizer(() => Effect.sync(() => counter.release(id)))
      const message = bound === "max"
        ? `There are ${max} of ${name} already, which is its max`
        : `The user has ${maxPerPrincipal} of ${name} already, which is its maxPerPrincipal`
      return failWith(new Full({ message }))
    })
  }

  /** The values of a server. They are released when it stops, at the latest. */
  const heldBy = (catalog: Catalog["Service"]): Held<A, E> => {
    const key = catalog[internals]
    const known = servers.get(key)
    if (known !== undefined) return known
    const count = makeCount()
    const made = RcMap.make({
      // A value that could not be acquired is not kept. The services are those of the request that needs the value.
      lookup: (owner: string) =>
        Effect.tapCause(Effect.andThen(count, acquire), () => RcMap.invalidate(held.map, owner)) as Effect.Effect<
          A,
          E | StateError,
          Scope.Scope
        >,
      idleTimeToLive: (owner: string) => owner.startsWith(principalPrefix) ? idleTimeout : 0
    })
    const held: Held<A, E> = { map: Effect.runSync(Scope.provide(made, key.scope)), retaining: new WeakSet() }
    servers.set(key, held)
    return held
  }

  const ownerOf = (catalog: Catalog["Service"], request: RequestContext): Effect.Effect<owners.Owner, StateError> => {
    const own = owners.ofSession(catalog, request) ?? owners.ofConnection(request)
    if (own !== undefined) return Effect.succeed(own)
    if (stateless !== "user") {
      return failWith(new NoSession({ message: `${name} belongs to a session, and the request has none` }))
    }
    const { principal } = request.caller
    return principal === undefined
      ? failWith(new Anonymous({ message: `${name} belongs to a user, and the caller is anonymous` }))
      : Effect.succeed(owners.ofPrincipal(principal.id))
  }

  const get = Effect.gen(function*() {
    const catalog = yield* Catalog
    const { key, scope } = yield* ownerOf(catalog, yield* McpRequest)
    const { map, retaining } = heldBy(catalog)
    const value = yield* RcMap.get(map, key)
    if (scope !== undefined && !retaining.has(scope)) {
      retaining.add(scope)
      // The value is there: this does not wait.
      yield* Scope.provide(RcMap.get(map, key), scope)
    }
    return value
  }) as PerSession<A, E, Exclude<R, Scope.Scope>>["get"]
  return { name, get, use: (run) => Effect.scoped(Effect.flatMap(get, run)) as never }
}

/**
 * Defines a value of each session with async functions, for `use` of the context of async handlers. An error of `acquire`
 * is that of the handler, which may run again, and an error of `release` is logged.
 *
 * @example
 * const browser = PerSession.async("browser", {
 *   acquire: () => chromium.launch(),
 *   release: (browser) => browser.close()
 * })
 * const open = Tool.async(Tool.make("open", { input: z.object({ url: z.url() }) }), async ({ url }, { use }) => {
 *   const page = await (await use(browser)).newPage()
 *   await page.goto(url)
 *   return page.title()
 * })
 */
export const async = <A>(
  name: string,
  options: Options & {
    readonly acquire: () => A | Promise<A>
    readonly release?: ((value: A) => void | Promise<void>) | undefined
  }
): PerSession<A, HandlerError> => {
  const { acquire, release } = options
  const released = (value: A) =>
    Effect.catchCause(
      attempt(() => release?.(value)),
      (cause) => Effect.logError(`failed to release ${name} of a session`, cause)
    )
  return make(name, {
    ...options,
    // Not interruptible: what a promise resolves with must be released.
    acquire: Effect.acquireRelease(attempt(acquire), released)
  })
}
