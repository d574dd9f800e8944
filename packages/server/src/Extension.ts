/**
 * Extensions: methods in addition to the server's own, their capabilities, and other results for calls of tools, such
 * as task handles.
 *
 * An extension is a definition among the others. It runs inside of all middleware, as the methods of the server do.
 *
 * @example
 * const jobs = Extension.layer({
 *   name: "com.example/jobs",
 *   capabilities: ({ revision }) => revision >= "2026-07-28" ? { extensions: { "com.example/jobs": {} } } : undefined,
 *   methods: [Extension.method(ListJobs, (_params, { caller }) => jobsOf(caller.principal))]
 * })
 */
import type * as Codec from "@skein/protocol/Codec"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as Method from "@skein/protocol/Method"
import type { Caller, RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { Catalog, type Handled } from "./Catalog.ts"
import { type Extension, type ExtensionMethod, internals, type ServerPages } from "./internal/catalog/catalogState.ts"

export type {
  Extension,
  ExtensionMethod,
  Publish,
  ServerPages,
  Subscription,
  ToolCall,
  ToolCallResult
} from "./internal/catalog/catalogState.ts"

export { defectResult } from "./internal/base/defectResult.ts"

/**
 * Makes the handler of a method. The params are decoded and the result is encoded in the revision of the caller. In the
 * stateless revision `resultType` and the name of the server are added to the result if they are absent. The first
 * argument is the method's entry of the table in `@skein/protocol/Method`, or an entry that the extension defines. It
 * determines the params of the method and the revisions that have it. `run` also receives the size of the server's pages.
 *
 * @example
 * const listJobs = Extension.method(ListJobs, (_params, { caller }) => jobsOf(caller.principal))
 */
export const method = <P, R>(
  entry: Method.RequestMethod<P, R>,
  run: (params: P, request: RequestContext, server: ServerPages) => Handled<Codec.Writable<R>>
): ExtensionMethod => ({
  method: entry as Method.AnyRequest,
  // The entry decodes the params that `run` receives.
  run: run as ExtensionMethod["run"]
})

/**
 * Adds an extension to the server. If two extensions have the same method in the same revision, the first one handles
 * it.
 */
export const layer = (extension: Extension): Layer.Layer<never, never, Catalog> => effect(Effect.succeed(extension))

/**
 * Adds an extension until the scope closes. Use it for an extension that several definitions share, which the first of
 * them adds.
 *
 * @example
 * Catalog.persistent(Extension.add(jobs))
 */
export const add = (extension: Extension): Effect.Effect<void, never, Catalog | Scope.Scope> =>
  Effect.flatMap(Catalog, (catalog) => catalog[internals].extensions.add(extension))

/**
 * Makes an extension with an effect and adds it to the server.
 *
 * @example
 * const jobs = Extension.effect(
 *   Effect.map(JobStore, (store) => ({ name: "com.example/jobs", methods: methodsOf(store) }))
 * )
 */
export const effect = <E, R>(
  make: Effect.Effect<Extension, E, R>
): Layer.Layer<never, E, Exclude<R, Scope.Scope> | Catalog> => Layer.effectDiscard(Effect.flatMap(make, add))

/**
 * Returns the extensions of a server, in the order of the definitions. In a mounted part those of the part come first, and
 * those of the server around it follow.
 */
export const list = (catalog: Catalog["Service"]): ReadonlyArray<Extension> => catalog[internals].extensions.available

/**
 * Sends a notification to the session of a caller. Returns `false` if no session can receive it: in the stateless
 * revision, after the end of the session, and before the client has sent `notifications/initialized`. It does not wait
 * for a slow client, which receives the last notification of each key.
 */
export const notify = (
  caller: Caller,
  key: string,
  notification: { readonly method: string; readonly params: JsonObject }
): Effect.Effect<boolean, never, Catalog> =>
  Effect.map(Catalog, (catalog) => catalog[internals].changes.listener?.notify(caller, key, notification) ?? false)

/**
 * Returns the scope that closes when the session of a caller ends, for later notifications. Returns `undefined` in the
 * stateless revision and after the end of the session.
 */
export const session = (caller: Caller): Effect.Effect<Scope.Scope | undefined, never, Catalog> =>
  Effect.map(Catalog, (catalog) => catalog[internals].changes.listener?.session(caller))
