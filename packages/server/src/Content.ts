/**
 * Content blocks for the results of tools and prompts: text, images, audio, links to resources, and embedded resources.
 *
 * Each function makes one content block. Give bytes as a `Uint8Array` or as base64 text; they are sent as base64. Text
 * that is not valid base64 throws a `TypeError`. URIs, priorities and sizes are validated when a handler returns the
 * block. A block that a validating client would refuse is not sent: the handler has failed unexpectedly, and the log
 * names the fault.
 *
 * @example
 * const plot = Tool.layer(Tool.make("plot"), () =>
 *   Effect.map(render, (png) => [Content.text("Sales by month"), Content.image(png, "image/png")]))
 */
import type { Annotations } from "@skein/protocol/Content"
import type { Meta } from "@skein/protocol/Message"
import { cut } from "@skein/protocol/Text"
import type * as Wire from "@skein/protocol/Content"
import * as Base64 from "effect/encoding/Base64"
import { omitUndefined } from "./internal/base/json.ts"

/** The optional members of every content block. */
export interface BlockOptions {
  /** The audience of the block and its priority (0 to 1). */
  readonly annotations?: Annotations | undefined
  readonly _meta?: Meta | undefined
}

/** One block of content. */
export type ContentBlock = Wire.ContentBlock

/** Bytes, or their base64 text. */
export type Bytes = Uint8Array | string

/** "The image data MUST be base64-encoded" (2024-11-05, prompts). A `data:` URI, for example, is not. */
const base64 = (bytes: Bytes): string => {
  if (typeof bytes !== "string") return Base64.encode(bytes)
  if (bytes.length % 4 === 0 && /^[A-Za-z\d+/]*={0,2}$/.test(bytes)) return bytes
  throw new TypeError("image or audio data is not valid base64")
}

/** Makes a text block. */
export const text = (text: string, options?: BlockOptions): Wire.TextContent => ({
  type: "text",
  text,
  ...(options && omitUndefined(options))
})

const binary = <T extends string>(type: T, data: Bytes, mimeType: string, options: BlockOptions | undefined) => ({
  type,
  data: base64(data),
  mimeType,
  ...(options && omitUndefined(options))
})

/**
 * Makes an image block. The MIME type is `image/png`, for example. Without it, the type of PNG, JPEG, GIF, WebP and BMP is
 * found in the bytes, and other bytes throw a `TypeError`.
 *
 * @example
 * const chart = Content.image(await readFile("chart.png"))
 */
export const image = (data: Bytes, mimeType?: string, options?: BlockOptions): Wire.ImageContent =>
  binary("image", data, mimeType ?? typeOf("image", data), options)

/**
 * Makes an audio block. The MIME type is `audio/wav`, for example; without it, that of WAV, MP3, Ogg, FLAC and M4A is
 * found in the bytes. Clients of 2024-11-05 receive a line of text
 * instead.
 */
export const audio = (data: Bytes, mimeType?: string, options?: BlockOptions): Wire.AudioContent =>
  binary("audio", data, mimeType ?? typeOf("audio", data), options)

/** The beginning of files, in base64. */
const signatures = {
  image: {
    "image/png": /^iVBORw0KGg/,
    "image/jpeg": /^\/9j\//,
    "image/gif": /^R0lGOD/,
    "image/webp": /^UklGR.{7}RUJQ/,
    "image/bmp": /^Qk[0-3]/
  },
  audio: {
    "audio/wav": /^UklGR.{7}QVZF/,
    "audio/mpeg": /^(?:SUQz|\/\/[I-Po-v])/,
    "audio/ogg": /^T2dnU/,
    "audio/flac": /^ZkxhQ/,
    "audio/mp4": /^.{6}Z0eXBNNEE/
  }
} as const

const typeOf = (kind: keyof typeof signatures, data: Bytes): string => {
  const start = base64(typeof data === "string" ? cut(data, 64) : data.subarray(0, 48))
  const found = Object.entries(signatures[kind]).find(([, signature]) => signature.test(start))
  if (found !== undefined) return found[0]
  const known = Object.keys(signatures[kind]).join(", ")
  throw new TypeError(`The bytes are no ${kind} of a known type (${known}): pass the MIME type, too`)
}

/**
 * Makes a link to a resource that the client can read. Clients before 2025-06-18 receive its title and URI as text.
 *
 * @example
 * Content.resourceLink({ uri: "file:///report.pdf", name: "report.pdf", mimeType: "application/pdf" })
 */
export const resourceLink = (
  link: Omit<Wire.ResourceLink, "type">
): Wire.ResourceLink => ({ type: "resource_link", ...link })

/**
 * Makes an embedded resource: with text if the contents are a string, and with bytes otherwise.
 *
 * @example
 * Content.resource("file:///notes.md", "# Notes", { mimeType: "text/markdown" })
 */
export const resource = (
  uri: string,
  contents: string | Uint8Array,
  options: BlockOptions & { readonly mimeType?: string | undefined } = {}
): Wire.EmbeddedResource => {
  const { mimeType, ...block } = options
  return { type: "resource", resource: resourceContents(uri, contents, mimeType), ...omitUndefined(block) }
}

/**
 * Makes one item of the `contents` of `resources/read`: with text if the contents are a string, and with bytes
 * otherwise.
 *
 * @example
 * Resource.layer(notes, Effect.succeed([Content.resourceContents("app://notes", "# Notes", "text/markdown")]))
 */
export const resourceContents = (
  uri: string,
  contents: string | Uint8Array,
  mimeType?: string | undefined
): Wire.TextResourceContents | Wire.BlobResourceContents => {
  const head = mimeType === undefined ? { uri } : { uri, mimeType }
  return typeof contents === "string" ? { ...head, text: contents } : { ...head, blob: Base64.encode(contents) }
}

/** The content that a handler may return: one text, one block, or several blocks. */
export type Input = string | ContentBlock | ReadonlyArray<ContentBlock>

/** Returns the content as a list of blocks. A string becomes one text block. */
export const blocks = (input: Input): ReadonlyArray<ContentBlock> =>
  typeof input === "string" ? [text(input)] : isBlocks(input) ? input : [input]

const isBlocks = (input: ContentBlock | ReadonlyArray<ContentBlock>): input is ReadonlyArray<ContentBlock> =>
  Array.isArray(input)
