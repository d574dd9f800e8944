/**
 * Extensions: methods beside the server's own, what is declared of them, and what may be answered in a tool's stead.
 *
 * An extension is a definition among the others. It stands behind all middleware, as the server's own methods do.
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
import { Catalog, type Extension, type ExtensionMethod, type Handled } from "./Catalog.ts"

export type { Called, Extension, ExtensionMethod, Publish, Subscription, ToolCall } from "./Catalog.ts"

/**
 * Handles a method: its params are read, and its result is written, in the caller's revision. In the request era the result says
 * of which kind it is and who answers, unless it says so itself. What the method may be asked for, and in which revisions, is
 * said by its entry, in the table of `Method` or one of the extension's own.
 */
export const method = <P, R>(
  entry: Method.RequestMethod<P, R>,
  run: (params: P, exchange: RequestContext) => Handled<Codec.Writable<R>>
): ExtensionMethod => ({
  method: entry as Method.AnyRequest,
  // The params are what the entry reads.
  run: run as ExtensionMethod["run"]
})

/** Adds an extension to the server. Of two that handle one method in one revision the first one does. */
export const layer = (extension: Extension): Layer.Layer<never, never, Catalog> =>
  Layer.effectDiscard(Effect.flatMap(Catalog, ({ extensions }) => extensions.add(extension)))

/** The same for an extension that has to be made. */
export const effect = <E, R>(
  make: Effect.Effect<Extension, E, R>
): Layer.Layer<never, E, Exclude<R, Scope.Scope> | Catalog> =>
  Layer.effectDiscard(
    Effect.flatMap(make, (extension) => Effect.flatMap(Catalog, ({ extensions }) => extensions.add(extension)))
  )

/**
 * Tells a notification to the session of a caller, unasked, as long as it is open; `false` where there is none to tell: in the
 * request era, after the session's end, and before the client has said that it is ready. It does not wait for a slow reader, who
 * is sent the last one of each key.
 */
export const tell = (
  caller: Caller,
  key: string,
  notification: { readonly method: string; readonly params: JsonObject }
): Effect.Effect<boolean, never, Catalog> =>
  Effect.map(Catalog, ({ changes }) => changes.listener?.tell(caller, key, notification) ?? false)

/**
 * The scope that closes when the session of a caller ends, for what is told to it later; `undefined` where there is none: in the
 * request era, and after the session's end.
 */
export const session = (caller: Caller): Effect.Effect<Scope.Scope | undefined, never, Catalog> =>
  Effect.map(Catalog, ({ changes }) => changes.listener?.session(caller))
