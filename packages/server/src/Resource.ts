/**
 * Resources: contents that a client can read by URI.
 *
 * `Resource.layer` registers a resource with its reader; `Resource.add` and `Resource.replace` do so while the server
 * runs. `Catalog.updated` notifies subscribers of a change.
 *
 * @example
 * const logo = Resource.make("shop://logo", { title: "The logo", mimeType: "image/png", ttlMs: 3_600_000 })
 * const live = Resource.layer(logo, Effect.promise(() => readFile("logo.png")))
 */
import type { Icon } from "@skein/protocol/BaseMetadata"
import type { Annotations } from "@skein/protocol/Content"
import type { Meta } from "@skein/protocol/Message"
import * as McpError from "@skein/protocol/McpError"
import { quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Hint } from "./Caching.ts"
import type { Catalog, HandlerServices } from "./Catalog.ts"
import { DefinitionError, InvalidUri, InvalidValue } from "./DefinitionError.ts"
import type { HandlerContext } from "./HandlerContext.ts"
import type { HandlerError } from "./HandlerError.ts"
import { toEffect } from "./internal/handlers/asyncHandler.ts"
import type { EffectMistake } from "./internal/handlers/handlerMistake.ts"
import { type Register, registerLayer, registerScoped } from "./internal/handlers/captureServices.ts"
import { refuseForeign } from "./internal/handlers/foreignOptions.ts"
import { nameOf } from "./internal/handlers/wrongAnswer.ts"
import { readResource, type ResourceAnswer } from "./internal/handlers/readResource.ts"
import type { Visible } from "./Registry.ts"
import { isUri } from "./internal/catalog/validateDefinition.ts"
import { omitUndefined } from "./internal/base/json.ts"

/** The description of a resource. Its caching hints limit how long, and by whom, its contents may be cached. */
export interface Options extends Hint {
  /** A name for programs. The URI by default. */
  readonly name?: string | undefined
  /** A name for people. */
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly mimeType?: string | undefined
  /** The size of the contents in bytes, before any encoding. */
  readonly size?: number | undefined
  /** The audience, the priority (0 to 1), and the time of the last change (`lastModified`, in ISO 8601). */
  readonly annotations?: Annotations | undefined
  /**
   * Which callers may see the resource or the template, read it and subscribe to it. All callers by default. For other
   * callers it does not exist. It must be fast.
   */
  readonly visible?: Visible | undefined
  readonly icons?: ReadonlyArray<Icon> | undefined
  readonly _meta?: Meta | undefined
}

/** A resource's definition. */
export interface Resource {
  readonly uri: string
  readonly options: Options
}

/**
 * The value that a reader returns: text, bytes (sent as base64), several contents with their own URIs and types
 * (`Content.resourceContents`), or the whole result, with caching hints of its own.
 */
export type Answer = ResourceAnswer

/**
 * Defines a resource. The URI must be valid by RFC 3986: a scheme and a colon, with all characters outside ASCII
 * percent-encoded. It is compared with the requested URI character by character.
 *
 * @example
 * const menu = Resource.make("shop://menu", { mimeType: "text/markdown" })
 */
export const make = (uri: string, options: Options = {}): Resource => ({ uri, options })

/**
 * Makes the error for a resource that does not exist: `-32002` up to 2025-11-25, `-32602` since 2026-07-28.
 *
 * @example
 * const note = (uri: string) => notes.has(uri) ? Effect.succeed(notes.get(uri)!) : Effect.fail(Resource.notFound(uri))
 */
export const notFound: (uri: string) => McpError.McpError = McpError.resourceNotFound

/**
 * Registers a resource with its reader. A failure of the reader becomes `-32603` with its message; an `McpError` keeps
 * its code. Fails with `DefinitionError`: `DuplicateName`, `InvalidUri`, `InvalidValue`.
 *
 * @example
 * const live = Resource.layer(menu, Effect.succeed("# Tea"))
 */
export const layer = <R = never, A = never>(
  resource: Resource,
  read: Effect.Effect<Answer, HandlerError, R> | (EffectMistake<A, "Resource"> & A)
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R>> =>
  registerLayer(register("add", resource, read as Effect.Effect<Answer, HandlerError, R>))

/**
 * Registers a resource with a reader that returns a value or a promise. Its errors reach the client by the rules of
 * `HandlerContext`.
 *
 * @example
 * const live = Resource.async(menu, ({ signal }) => readFile("menu.md", { encoding: "utf8", signal }))
 */
const async_ = <R = never>(
  resource: Resource,
  read: (context: HandlerContext<R>) => Answer | Promise<Answer>
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R>> =>
  layer(resource, toEffect<void, Answer, R>((_, context) => read(context))())
export { async_ as async }

/** Registers a resource with its reader until the scope closes, while the server runs. Fails as `layer` does. */
export const add = <R = never, A = never>(
  resource: Resource,
  read: Effect.Effect<Answer, HandlerError, R> | (EffectMistake<A, "Resource"> & A)
): Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | HandlerServices<R>> =>
  registerScoped(register("add", resource, read as Effect.Effect<Answer, HandlerError, R>))

/**
 * Replaces the resource of the same URI until the scope closes. Fails with `DefinitionError` `NotFound` if no resource
 * has the URI, and otherwise as `layer` does.
 */
export const replace: typeof add = <R>(resource: Resource, read: unknown) =>
  registerScoped(register("replace", resource, read as Effect.Effect<Answer, HandlerError, R>))

const register = <E extends HandlerError, R>(
  how: "add" | "replace",
  resource: Resource,
  read: Effect.Effect<Answer, E, R>
): Register<R> =>
(catalog, provide) => {
  const { uri, options } = resource
  // Untyped programs pass a function or a promise.
  if (!Effect.isEffect(read)) {
    const problem = `its reader is ${nameOf(read)}, and not an effect: use Resource.async`
    const reason = new InvalidValue({ message: `The resource ${quote(uri)} is invalid: ${problem}` })
    return Effect.fail(new DefinitionError({ reason, kind: "resource", definition: uri }))
  }
  if (!isUri(uri)) {
    const reason = new InvalidUri({
      message: `The resource ${quote(uri)} is invalid: its URI does not conform to RFC 3986`
    })
    return Effect.fail(new DefinitionError({ reason, kind: "resource", definition: uri }))
  }
  const { cacheScope: _s, ttlMs: _t, visible, ...listed } = options
  const reader = readResource(provide(read), uri, options)
  return Effect.andThen(
    refuseForeign("resource", uri, options),
    catalog.resources[how](uri, {
      definition: { uri, name: uri, ...omitUndefined(listed) },
      visible,
      read: () => reader
    })
  )
}
