/**
 * Resources: what a client can read by its URI.
 */
import type * as Common from "@skein/protocol/Common"
import * as McpError from "@skein/protocol/McpError"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { Catalog } from "./Catalog.ts"
import { DefinitionError } from "./DefinitionError.ts"
import type { HandlerError } from "./HandlerError.ts"
import * as captured from "./internal/captured.ts"
import { clip } from "./internal/clip.ts"
import { type Body, reading } from "./internal/contents.ts"

/** What describes a resource. */
export interface Options {
  /** A name for programs; the URI by default. */
  readonly name?: string
  /** A name for people. */
  readonly title?: string
  readonly description?: string
  readonly mimeType?: string
  /** Bytes, before any encoding. */
  readonly size?: number
  readonly annotations?: Common.Annotations
  readonly icons?: ReadonlyArray<Common.Icon>
  readonly _meta?: Common.Meta
}

/** A resource's definition. */
export interface Resource {
  readonly uri: string
  readonly options: Options
}

/** What a reader may answer: text, bytes, or several contents with their own URIs and types. */
export type Answer = Body

/**
 * Defines a resource. The URI is one by RFC 3986: a scheme and a colon, and what is not ASCII percent-encoded. It is compared to
 * the letter with the one that is asked for.
 */
export const make = (uri: string, options: Options = {}): Resource => ({ uri, options })

/** The error for a resource that is not there: `-32002` up to 2025-11-25, `-32602` since 2026-07-28. */
export const notFound: (uri: string) => McpError.McpError = McpError.resourceNotFound

/**
 * Offers a resource with what reads it. What the reader fails with becomes `-32603` with its message, an `McpError` keeps its
 * own code. Fails with `DefinitionError` when the URI is taken or is none.
 */
export const layer = <E extends HandlerError = never, R = never>(
  resource: Resource,
  read: Effect.Effect<Answer, E, R>
): Layer.Layer<never, DefinitionError, Catalog | captured.Needed<R>> =>
  captured.layer<R>((catalog, provide) => {
    const { uri, options } = resource
    if (!isUri(uri)) {
      const message = `The resource ${JSON.stringify(clip(uri))} cannot be offered: this is no URI`
      return Effect.fail(new DefinitionError({ reason: "Uri", kind: "resource", definition: uri, message }))
    }
    const reader = reading(provide(read), uri, options.mimeType)
    return catalog.resources.add(uri, { definition: { uri, name: uri, ...options }, read: () => reader })
  })

// A scheme and a colon, then an authority, a path with a query, and a fragment, of the characters that each may hold.
const character = "[\\w\\-.~:/?@!$&'()*+,;=]|%[\\da-f]{2}"
const authority = "//[\\w\\-.~:@!$&'()*+,;=[\\]%]*(?=[/?#]|$)"
const rfc3986 = /* @__PURE__ */ new RegExp(
  `^[a-z][a-z\\d+.-]*:(?:${authority})?(?:${character})*(?:#(?:${character})*)?$`,
  "i"
)

/**
 * "Custom URI schemes MUST be in accordance with RFC3986" (2025-06-18, resources). Clients that check refuse a whole listing for
 * one that is not.
 */
const isUri = (text: string): boolean => rfc3986.test(text)
