/**
 * Saves the images, the audio and the binary resources of a result: one in a file, or several in a folder.
 */
import { ClientError, InvalidResponse } from "@skein/client/ClientError"
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import { quoteName, sanitize } from "../base/format.ts"
import { makeFolder, writeBytes } from "../base/nodeFiles.ts"
import { isFolder } from "../base/nodeProject.ts"
import { type CommandFailed, type Console, failed } from "../base/process.ts"

/** A part of a result that is not text. */
interface Attachment {
  readonly kind: "image" | "audio" | "file"
  readonly mimeType: string
  /** In base64. */
  readonly data: string
}

const byDefault = "application/octet-stream"

/** The parts of a result that are not text. */
export const attachmentsOf = ({ content }: CallToolResult): ReadonlyArray<Attachment> =>
  content.flatMap((block): ReadonlyArray<Attachment> => {
    if (block.type === "image" || block.type === "audio") {
      return [{ kind: block.type, mimeType: block.mimeType, data: block.data }]
    }
    if (block.type !== "resource" || !("blob" in block.resource)) return []
    const { blob, mimeType = byDefault } = block.resource
    return [{ kind: "file", mimeType, data: blob }]
  })

const extensions: Readonly<Record<string, string>> = {
  "application/pdf": "pdf",
  "application/zip": "zip",
  "audio/mpeg": "mp3",
  "audio/ogg": "ogg",
  "audio/wav": "wav",
  "audio/x-wav": "wav",
  "image/gif": "gif",
  "image/jpeg": "jpg",
  "image/png": "png",
  "image/svg+xml": "svg",
  "image/webp": "webp"
}

/** The name of a file in a folder. The server has no part in it, but for the type that it declares. */
const nameOf = ({ kind, mimeType }: Attachment, at: number): string => {
  const type = mimeType.split(";")[0]!.trim().toLowerCase()
  return `${kind}-${at + 1}.${Object.hasOwn(extensions, type) ? extensions[type] : "bin"}`
}

/** The bytes of a text in base64. `what` it is belongs to the message. */
export const decodeBase64 = (data: string, what: string): Effect.Effect<Uint8Array, ClientError> => {
  const bytes = Base64.decode(data)
  if (Result.isSuccess(bytes)) return Effect.succeed(bytes.success)
  const message = `${what} not valid base64`
  return Effect.fail(new ClientError({ reason: new InvalidResponse({ message, cause: bytes.failure }) }))
}

/** Writes the parts of a result that are not text, and prints the path of each on stderr. */
export const saveAttachments = (
  to: string,
  result: CallToolResult,
  { warn }: Pick<Console, "warn">
): Effect.Effect<void, ClientError | CommandFailed> =>
  Effect.gen(function*() {
    const found = attachmentsOf(result)
    if (found.length === 0) {
      return yield* failed(
        2,
        `--output ${quoteName(to)} was not written: the result has no image, audio or binary resource`
      )
    }
    const inFolder = found.length > 1 || isFolder(to)
    if (inFolder) {
      yield* Effect.mapError(makeFolder(to), ({ message }) =>
        failed(2, `${message}. The result has ${found.length} parts to save: --output must be a folder`))
    }
    for (const [at, part] of found.entries()) {
      const file = inFolder ? `${to.replace(/[\\/]+$/, "")}/${nameOf(part, at)}` : to
      const bytes = yield* decodeBase64(part.data, `The data of ${nameOf(part, at)} is`)
      yield* Effect.mapError(writeBytes(file, bytes), ({ message }) =>
        failed(2, message))
      warn(`Wrote ${bytes.length} bytes (${quoteName(part.mimeType)}) to ${sanitize(file)}`)
    }
  })
