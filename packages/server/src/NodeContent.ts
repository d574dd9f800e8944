/**
 * Images and audio from files, in Node: content blocks for the results of tools and prompts, as `Content` makes them of
 * bytes.
 *
 * `image` and `audio` are effects, `imageAsync` and `audioAsync` return promises. A failure is `ContentUnavailable`, whose
 * message the client or its model receives. Do not pass the path of a client without a check: it may name any file that the
 * process can read.
 *
 * @example
 * new AsyncServer({ name: "shop", version: "1.0.0" })
 *   .tool("chart", {}, () => NodeContent.imageAsync("chart.png"))
 */
import type * as Wire from "@skein/protocol/Content"
import * as PrintableError from "@skein/protocol/PrintableError"
import { quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import { readFile, stat } from "node:fs/promises"
import * as Content from "./Content.ts"

/** The most bytes of a file: as base64 they fit into the 4 MiB that clients read of one message. */
const maxFileBytes = 3_000_000

/**
 * The file cannot be read, is a folder or a device, has more than 3,000,000 bytes, or is not of a known type. The message
 * names the file without its folder.
 */
export class ContentUnavailable extends PrintableError.tagged("ContentUnavailable")<{
  /** The error of the file system. */
  readonly cause?: unknown
}> {}

type Make<Block> = (data: Uint8Array, mimeType?: string, options?: Content.BlockOptions) => Block

type Path = string | URL

const reasonOf = (cause: unknown): string => {
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined
  return code === "ENOENT" ? "it does not exist" : code === undefined ? String(cause) : String(code)
}

const read = async <Block>(
  make: Make<Block>,
  path: Path,
  mimeType: string | undefined,
  options: Content.BlockOptions | undefined,
  signal?: AbortSignal
): Promise<Block> => {
  const refuse = (problem: string, cause?: unknown): never => {
    const name = quote(String(path).replace(/^.*[/\\]/, ""))
    throw new ContentUnavailable({ message: `The file ${name} cannot be sent: ${problem}`, cause })
  }
  const orRefuse = (cause: unknown): never => refuse(reasonOf(cause), cause)
  const found = await stat(path).catch(orRefuse)
  // A device or a pipe could be endless.
  if (!found.isFile()) return refuse(found.isDirectory() ? "it is a folder" : "it is not a regular file")
  if (found.size > maxFileBytes) return refuse(`it has ${found.size} bytes, more than ${maxFileBytes}`)
  const bytes = await readFile(path, { signal }).catch(orRefuse)
  try {
    return make(bytes, mimeType, options)
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error))
  }
}

const effect =
  <Block>(make: Make<Block>) =>
  (path: Path, mimeType?: string, options?: Content.BlockOptions): Effect.Effect<Block, ContentUnavailable> =>
    Effect.tryPromise({
      try: (signal) => read(make, path, mimeType, options, signal),
      catch: (error) => error as ContentUnavailable
    })

/**
 * Reads an image from a file of at most 3,000,000 bytes. The MIME type is found as by `Content.image`, unless it is given.
 * A relative path is relative to the working directory: for a file beside a module use `new URL("./a.png", import.meta.url)`.
 *
 * @example
 * const chart = Tool.layer(Tool.make("chart"), () => NodeContent.image("chart.png"))
 */
export const image: (
  path: string | URL,
  mimeType?: string,
  options?: Content.BlockOptions
) => Effect.Effect<Wire.ImageContent, ContentUnavailable> = /* @__PURE__ */ effect(Content.image)

/** Reads audio from a file, as `image` reads an image. */
export const audio: (
  path: string | URL,
  mimeType?: string,
  options?: Content.BlockOptions
) => Effect.Effect<Wire.AudioContent, ContentUnavailable> = /* @__PURE__ */ effect(Content.audio)

/**
 * `image` for async handlers: the promise rejects with `ContentUnavailable`.
 *
 * @example
 * const chart = Tool.async(Tool.make("chart"), () => NodeContent.imageAsync("chart.png"))
 */
export const imageAsync = (
  path: string | URL,
  mimeType?: string,
  options?: Content.BlockOptions
): Promise<Wire.ImageContent> => read(Content.image, path, mimeType, options)

/** `audio` for async handlers: the promise rejects with `ContentUnavailable`. */
export const audioAsync = (
  path: string | URL,
  mimeType?: string,
  options?: Content.BlockOptions
): Promise<Wire.AudioContent> => read(Content.audio, path, mimeType, options)
