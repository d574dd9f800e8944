/**
 * Content: the parts of the results of tools, of the messages of prompts, and of resources.
 */
import * as Core from "@skein/server/Content"
import type {
  Annotations,
  AudioContent,
  BlobResourceContents,
  ContentBlock,
  EmbeddedResource,
  ImageContent,
  Meta,
  ResourceLink,
  TextContent,
  TextResourceContents
} from "../base/messages.ts"

/** The optional members of every content block. */
export interface BlockOptions {
  /** The audience of the block and its priority (0 to 1). */
  readonly annotations?: Annotations | undefined
  readonly _meta?: Meta | undefined
}

/** The content that a handler may return: one text, one block, or several blocks. */
export type ContentInput = string | ContentBlock | ReadonlyArray<ContentBlock>

/** The functions of `Content`. */
export interface Content {
  /** Makes a text block. */
  readonly text: (text: string, options?: BlockOptions) => TextContent
  /**
   * Makes an image block of bytes, or of their base64 text. Without a MIME type, that of PNG, JPEG, GIF, WebP and BMP is found
   * in the bytes, and other bytes throw a `TypeError`. So does a text that is not base64.
   *
   * @example
   * const chart = Content.image(await readFile("chart.png"))
   */
  readonly image: (data: Uint8Array | string, mimeType?: string, options?: BlockOptions) => ImageContent
  /**
   * Makes an audio block of bytes, or of their base64 text. Without a MIME type, that of WAV, MP3, Ogg, FLAC and M4A is found in
   * the bytes. Clients of 2024-11-05 receive a line of text instead.
   */
  readonly audio: (data: Uint8Array | string, mimeType?: string, options?: BlockOptions) => AudioContent
  /**
   * Makes a link to a resource that the client can read. Clients before 2025-06-18 receive its title and URI as text.
   *
   * @example
   * Content.resourceLink({ uri: "file:///report.pdf", name: "report.pdf", mimeType: "application/pdf" })
   */
  readonly resourceLink: (link: Omit<ResourceLink, "type">) => ResourceLink
  /**
   * Makes an embedded resource: with text if the contents are a string, and with bytes otherwise.
   *
   * @example
   * Content.resource("file:///notes.md", "# Notes", { mimeType: "text/markdown" })
   */
  readonly resource: (
    uri: string,
    contents: string | Uint8Array,
    options?: BlockOptions & { readonly mimeType?: string | undefined }
  ) => EmbeddedResource
  /**
   * Reads an image from a file of at most 3,000,000 bytes. Rejects if it cannot be read, with a message for the model. A relative
   * path is relative to the working directory. Do not pass the path of a client without a check.
   *
   * @example
   * server.tool("chart", {}, () => Content.imageFile(new URL("chart.png", import.meta.url)))
   */
  readonly imageFile: (path: string | URL, mimeType?: string, options?: BlockOptions) => Promise<ImageContent>
  /** Reads audio from a file, as `imageFile` reads an image. */
  readonly audioFile: (path: string | URL, mimeType?: string, options?: BlockOptions) => Promise<AudioContent>
  /** Makes one of several contents that the reader of a resource returns. */
  readonly resourceContents: (
    uri: string,
    contents: string | Uint8Array,
    mimeType?: string
  ) => TextResourceContents | BlobResourceContents
}

const { audio, image, resource, resourceContents, resourceLink, text } = Core

const files = () => import("@skein/server/NodeContent")

const imageFile = async (...file: Parameters<Content["imageFile"]>) => (await files()).imageAsync(...file)
const audioFile = async (...file: Parameters<Content["audioFile"]>) => (await files()).audioAsync(...file)

/**
 * Makes the parts of results, messages and resources.
 *
 * @example
 * server.tool("plot", {}, async () => [Content.text("Sales by month"), Content.image(await render())])
 */
export const Content: Content = {
  audio,
  audioFile,
  image,
  imageFile,
  resource,
  resourceContents,
  resourceLink,
  text
} as never
