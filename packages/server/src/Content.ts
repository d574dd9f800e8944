/**
 * What tools and prompts answer with: text, images, sounds, links to resources, and resources with their contents.
 *
 * Each function makes one content block. Bytes are given as a `Uint8Array` or as base64 text, and travel as base64; a text that is
 * none throws. URIs, priorities and sizes are looked at when a handler answers with them: what clients that check would refuse is
 * not sent, but answered `-32603`, and the log says why.
 */
import type * as Common from "@skein/protocol/Common"
import type * as Wire from "@skein/protocol/Content"
import * as Base64 from "effect/encoding/Base64"
import { omitUndefined } from "./internal/json.ts"

/** What every content block may carry besides its content. */
export interface BlockOptions {
  /** Hints about who the block is for and how much it matters. */
  readonly annotations?: Common.Annotations | undefined
  readonly _meta?: Common.Meta | undefined
}

/** One block of content. */
export type ContentBlock = Wire.ContentBlock

/** Bytes, or the base64 text of them. */
export type Bytes = Uint8Array | string

/** "The image data MUST be base64-encoded" (2024-11-05, prompts): a `data:` URI, for instance, is not. */
const base64 = (bytes: Bytes): string => {
  if (typeof bytes !== "string") return Base64.encode(bytes)
  if (bytes.length % 4 === 0 && /^[A-Za-z\d+/]*={0,2}$/.test(bytes)) return bytes
  throw new TypeError("The data of an image or a sound is no base64")
}

/** Text. */
export const text = (text: string, options?: BlockOptions): Wire.TextContent => ({
  type: "text",
  text,
  ...(options && omitUndefined(options))
})

/** An image, `image/png` for instance. */
export const image = (data: Bytes, mimeType: string, options?: BlockOptions): Wire.ImageContent => ({
  type: "image",
  data: base64(data),
  mimeType,
  ...(options && omitUndefined(options))
})

/** A sound, `audio/wav` for instance. Clients of 2024-11-05 get a line of text in its place. */
export const audio = (data: Bytes, mimeType: string, options?: BlockOptions): Wire.AudioContent => ({
  type: "audio",
  data: base64(data),
  mimeType,
  ...(options && omitUndefined(options))
})

/** A link to a resource that the client may read. Clients before 2025-06-18 get its title and address as text. */
export const resourceLink = (
  link: Omit<Wire.ResourceLink, "type">
): Wire.ResourceLink => ({ type: "resource_link", ...link })

/** A resource with its contents: text when they are a string, else bytes. */
export const resource = (
  uri: string,
  contents: string | Uint8Array,
  options: BlockOptions & { readonly mimeType?: string | undefined } = {}
): Wire.EmbeddedResource => {
  const { mimeType, ...block } = options
  return { type: "resource", resource: resourceContents(uri, contents, mimeType), ...omitUndefined(block) }
}

/** The contents of a resource, as `resources/read` answers them: text when they are a string, else bytes. */
export const resourceContents = (
  uri: string,
  contents: string | Uint8Array,
  mimeType?: string | undefined
): Wire.TextResourceContents | Wire.BlobResourceContents => {
  const head = mimeType === undefined ? { uri } : { uri, mimeType }
  return typeof contents === "string" ? { ...head, text: contents } : { ...head, blob: Base64.encode(contents) }
}

/** What a handler may answer in place of a list of blocks. */
export type Input = string | ContentBlock | ReadonlyArray<ContentBlock>

/** The blocks that are meant: a string is one block of text. */
export const blocks = (input: Input): ReadonlyArray<ContentBlock> =>
  typeof input === "string" ? [text(input)] : isBlocks(input) ? input : [input]

const isBlocks = (input: ContentBlock | ReadonlyArray<ContentBlock>): input is ReadonlyArray<ContentBlock> =>
  Array.isArray(input)
