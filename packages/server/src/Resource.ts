/**
 * Resources: what a client can read by its URI.
 *
 * `Resource.layer` binds a resource to what reads it; `Resource.add` and `Resource.replace` do so while the server runs, and
 * `Catalog.updated` says that one has changed.
 *
 * @example
 * const logo = Resource.make("shop://logo", { title: "The logo", mimeType: "image/png", ttlMs: 3_600_000 })
 * const live = Resource.layer(logo, Effect.promise(() => readFile("logo.png")))
 */
import type * as Common from "@skein/protocol/Common"
import * as McpError from "@skein/protocol/McpError"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Hint } from "./Caching.ts"
import type { Catalog } from "./Catalog.ts"
import { DefinitionError } from "./DefinitionError.ts"
import type { HandlerError } from "./HandlerError.ts"
import * as captured from "./internal/definitions/captureServices.ts"
import { quoted } from "./internal/text.ts"
import { readResource, type ResourceBody } from "./internal/definitions/readResource.ts"
import type { Visible } from "./Registry.ts"
import { isUri } from "./internal/definitions/validateDefinition.ts"
import { omitUndefined } from "./internal/json.ts"

/** What describes a resource. Its caching hints tell how long, and by whom, its contents may be kept. */
export interface Options extends Hint {
  /** A name for programs; the URI by default. */
  readonly name?: string | undefined
  /** A name for people. */
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly mimeType?: string | undefined
  /** Bytes, before any encoding. */
  readonly size?: number | undefined
  /** Who it is for, how much it matters, and when it changed last (`lastModified`, in ISO 8601). */
  readonly annotations?: Common.Annotations | undefined
  /** Who may see it, and so read it and subscribe to it; everybody by default. To others there is none. It must be quick. */
  readonly visible?: Visible | undefined
  readonly icons?: ReadonlyArray<Common.Icon> | undefined
  readonly _meta?: Common.Meta | undefined
}

/** A resource's definition. */
export interface Resource {
  readonly uri: string
  readonly options: Options
}

/**
 * What a reader may answer: text, bytes (sent as base64), several contents with their own URIs and types
 * (`Content.resourceContents`), or the whole result, with caching hints of its own.
 */
export type Answer = ResourceBody

/**
 * Defines a resource. The URI is one by RFC 3986: a scheme and a colon, and what is not ASCII percent-encoded. It is compared to
 * the letter with the one that is asked for.
 */
export const make = (uri: string, options: Options = {}): Resource => ({ uri, options })

/** The error for a resource that is not there: `-32002` up to 2025-11-25, `-32602` since 2026-07-28. */
export const notFound: (uri: string) => McpError.McpError = McpError.resourceNotFound

/**
 * Offers a resource with what reads it. What the reader fails with becomes `-32603` with its message, an `McpError` keeps its
 * own code. Fails with `DefinitionError` when the URI is taken or is none, or a value of the definition is not allowed.
 */
export const layer = <E extends HandlerError = never, R = never>(
  resource: Resource,
  read: Effect.Effect<Answer, E, R>
): Layer.Layer<never, DefinitionError, Catalog | captured.Required<R>> => captured.layer(offer("add", resource, read))

/** Offers a resource with what reads it until the scope closes, while the server runs. Fails as `layer` does. */
export const add = <E extends HandlerError = never, R = never>(
  resource: Resource,
  read: Effect.Effect<Answer, E, R>
): Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | captured.Required<R>> =>
  captured.effect(offer("add", resource, read))

/** The same in the stead of the resource of that URI, which is back when the scope closes. Fails with `Unknown` without one. */
export const replace = <E extends HandlerError = never, R = never>(
  resource: Resource,
  read: Effect.Effect<Answer, E, R>
): Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | captured.Required<R>> =>
  captured.effect(offer("replace", resource, read))

const offer = <E extends HandlerError, R>(
  how: "add" | "replace",
  resource: Resource,
  read: Effect.Effect<Answer, E, R>
): captured.Register<R> =>
(catalog, provide) => {
  const { uri, options } = resource
  if (!isUri(uri)) {
    const message = `The resource ${quoted(uri)} cannot be offered: this is no URI`
    return Effect.fail(new DefinitionError({ reason: "Uri", kind: "resource", definition: uri, message }))
  }
  const { cacheScope: _s, ttlMs: _t, visible, ...said } = options
  const reader = readResource(provide(read), uri, options)
  return catalog.resources[how](uri, {
    definition: { uri, name: uri, ...omitUndefined(said) },
    visible,
    read: () => reader
  })
}
