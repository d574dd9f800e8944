/**
 * Content blocks: the parts of a tool's result, a prompt's message and a model's message.
 */
import * as Schema from "effect/Schema"
import { fallback, member, since } from "./Annotate.ts"
import { iconFields, nameFields } from "./BaseMetadata.ts"
import { isObject } from "./JsonRpc.ts"
import { metaFields } from "./Message.ts"
import { AnyValue, Base64, Uri } from "./Primitive.ts"
import { quote } from "./Text.ts"

/** The sender of a message, or the audience of content. */
export const Role = Schema.Literals(["user", "assistant"])
export type Role = typeof Role.Type

/** Hints for the client about the audience and the importance of an item. */
export class Annotations extends Schema.Opaque<Annotations>()(Schema.Struct({
  audience: Schema.optionalKey(Schema.Array(Role)),
  /** From 0 (least important) to 1 (effectively required). */
  priority: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))),
  /** An ISO 8601 date and time. */
  lastModified: since("2025-06-18", Schema.optionalKey(Schema.String))
})) {}

const displayFields = { annotations: Schema.optionalKey(Annotations), ...metaFields }

const text = (value: string): { readonly type: "text"; readonly text: string } => ({ type: "text", text: value })

/** Text. */
export class TextContent extends Schema.Opaque<TextContent>()(Schema.Struct({
  type: Schema.Literal("text"),
  text: Schema.String,
  ...displayFields
})) {}

/** An image, in base64. */
export class ImageContent extends Schema.Opaque<ImageContent>()(Schema.Struct({
  type: Schema.Literal("image"),
  data: Base64,
  mimeType: Schema.String,
  ...displayFields
})) {}

/** Audio in base64, since 2025-03-26. For older peers a line of text that names its media type is written instead. */
export class AudioContent extends Schema.Opaque<AudioContent>()(member(
  Schema.Struct({
    type: Schema.Literal("audio"),
    data: Base64,
    mimeType: Schema.String,
    ...displayFields
  }),
  { since: "2025-03-26", degrade: (audio) => text(`[audio: ${audio.mimeType}]`) }
)) {}

/** The fields that text and binary contents of a resource share. */
export class ResourceContents extends Schema.Opaque<ResourceContents>()(Schema.Struct({
  uri: Uri,
  mimeType: Schema.optionalKey(Schema.String),
  ...metaFields
})) {}

/** The contents of a text resource. */
export class TextResourceContents extends Schema.Opaque<TextResourceContents>()(Schema.Struct({
  ...ResourceContents.fields,
  text: Schema.String
})) {}

/** The contents of a binary resource, in base64. */
export class BlobResourceContents extends Schema.Opaque<BlobResourceContents>()(Schema.Struct({
  ...ResourceContents.fields,
  blob: Base64
})) {}

/** The contents of a resource, text or binary. */
export const AnyResourceContents = Schema.Union([TextResourceContents, BlobResourceContents])
export type AnyResourceContents = typeof AnyResourceContents.Type

/** A resource with its contents. */
export class EmbeddedResource extends Schema.Opaque<EmbeddedResource>()(Schema.Struct({
  type: Schema.Literal("resource"),
  resource: AnyResourceContents,
  ...displayFields
})) {}

/** The fields that describe a resource, in a list of resources and in a link to one. */
export const resourceFields = {
  ...nameFields,
  ...iconFields,
  uri: Uri,
  description: Schema.optionalKey(Schema.String),
  mimeType: Schema.optionalKey(Schema.String),
  /** Bytes of the raw content, before any encoding. */
  size: Schema.optionalKey(Schema.Int),
  ...displayFields
}

/** A link to a resource, since 2025-06-18. For older peers its title and URI are written as text. */
export class ResourceLink extends Schema.Opaque<ResourceLink>()(member(
  Schema.Struct({ type: Schema.Literal("resource_link"), ...resourceFields }),
  { since: "2025-06-18", degrade: (link) => text(`[resource: ${link.title ?? link.name}] ${link.uri}`) }
)) {}

/**
 * One block of a tool's result or a prompt's message. Where malformed members may be ignored, another object is read as
 * a text that names its type, so that the other blocks are not lost and the model sees the gap.
 */
export const ContentBlock = fallback(
  Schema.Union([TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource]),
  (value) => {
    if (!isObject(value)) return undefined
    const { type } = value
    return text(`[content that could not be read${typeof type === "string" ? `, of type ${quote(type, 32)}` : ""}]`)
  }
)
export type ContentBlock = typeof ContentBlock.Type

/**
 * The field `structuredContent` of a tool's result. Since 2026-07-28 it is any JSON value; before, it must be an
 * object, another value is left out when writing, and `null` is read as absent.
 */
export const structuredFields = {
  structuredContent: since("2025-06-18", Schema.optionalKey(AnyValue), {
    lift: (value, revision) => value === null && revision < "2026-07-28" ? undefined : value,
    lower: (value, revision) => revision >= "2026-07-28" || isObject(value) ? value : undefined
  })
}
