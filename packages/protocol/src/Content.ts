/**
 * Content: what tools, prompts and models answer with.
 */
import * as Schema from "effect/Schema"
import { member } from "./Annotate.ts"
import { Annotations, Base64, iconFields, metaFields, nameFields, Uri } from "./Common.ts"

const displayFields = { annotations: Schema.optionalKey(Annotations), ...metaFields }

const text = (value: string): { readonly type: "text"; readonly text: string } => ({ type: "text", text: value })

/** Text. */
export class TextContent extends Schema.Opaque<TextContent>()(Schema.Struct({
  type: Schema.Literal("text"),
  text: Schema.String,
  ...displayFields
})) {}

/** An image. */
export class ImageContent extends Schema.Opaque<ImageContent>()(Schema.Struct({
  type: Schema.Literal("image"),
  data: Base64,
  mimeType: Schema.String,
  ...displayFields
})) {}

/** A sound, since 2025-03-26. Older peers get a line of text that says what was left out. */
export class AudioContent extends Schema.Opaque<AudioContent>()(member(
  Schema.Struct({
    type: Schema.Literal("audio"),
    data: Base64,
    mimeType: Schema.String,
    ...displayFields
  }),
  { since: "2025-03-26", degrade: (audio) => text(`[audio: ${audio.mimeType}]`) }
)) {}

/** What the contents of a resource have in common. */
export class ResourceContents extends Schema.Opaque<ResourceContents>()(Schema.Struct({
  uri: Uri,
  mimeType: Schema.optionalKey(Schema.String),
  ...metaFields
})) {}

/** The contents of a resource that is text. */
export class TextResourceContents extends Schema.Opaque<TextResourceContents>()(Schema.Struct({
  ...ResourceContents.fields,
  text: Schema.String
})) {}

/** The contents of a resource that is binary. */
export class BlobResourceContents extends Schema.Opaque<BlobResourceContents>()(Schema.Struct({
  ...ResourceContents.fields,
  blob: Base64
})) {}

/** The contents of a resource, of either kind. */
export const AnyResourceContents = Schema.Union([TextResourceContents, BlobResourceContents])
export type AnyResourceContents = typeof AnyResourceContents.Type

/** A resource with its contents. */
export class EmbeddedResource extends Schema.Opaque<EmbeddedResource>()(Schema.Struct({
  type: Schema.Literal("resource"),
  resource: AnyResourceContents,
  ...displayFields
})) {}

/** What describes a resource: the fields of `Resource` and of a link to one. */
export const resourceFields = {
  ...nameFields,
  ...iconFields,
  uri: Uri,
  description: Schema.optionalKey(Schema.String),
  mimeType: Schema.optionalKey(Schema.String),
  /** Bytes, before any encoding. */
  size: Schema.optionalKey(Schema.Int),
  ...displayFields
}

/** A resource that can be read, since 2025-06-18. Older peers get its title and address as text. */
export class ResourceLink extends Schema.Opaque<ResourceLink>()(member(
  Schema.Struct({ type: Schema.Literal("resource_link"), ...resourceFields }),
  { since: "2025-06-18", degrade: (link) => text(`[resource: ${link.title ?? link.name}] ${link.uri}`) }
)) {}

/** One block of what a tool or a prompt answers with. */
export const ContentBlock = Schema.Union([TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource])
export type ContentBlock = typeof ContentBlock.Type
