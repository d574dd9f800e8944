/**
 * Documents in files, for programs that run in Node. Only this module imports Node, when a document is a file.
 */
import * as Effect from "effect/Effect"
import { LoadFailed, OpenApiError } from "../../OpenApiError.ts"

/**
 * Whether a file is in the folder of another one, or below. References to such a file are allowed without an option.
 */
export const isBeside = (url: URL, base: URL | undefined): boolean =>
  base?.protocol === "file:" && url.protocol === "file:" && url.host === base.host &&
  url.pathname.startsWith(base.pathname.slice(0, base.pathname.lastIndexOf("/") + 1))

/**
 * Reads a file of at most `maxBytes` bytes. Returns `undefined` for a larger one, of which nothing is read. Fails with
 * `LoadFailed`, also for a device or a pipe, which may have no end. With `beside`, the real path of the file must be in
 * the folder of that file, or below: a symbolic link may lead out of it.
 */
export const readFile = (
  url: URL,
  maxBytes: number,
  beside: URL | undefined
): Effect.Effect<Uint8Array | undefined, OpenApiError> => {
  const failed = (why: string) =>
    new OpenApiError({
      reason: new LoadFailed({ message: `Cannot read the document ${url.href}: ${why}`, url: url.href })
    })
  return Effect.tryPromise({
    try: async () => {
      const { constants, open, realpath } = await import("node:fs/promises")
      const { dirname, sep } = await import("node:path")
      const { fileURLToPath } = await import("node:url")
      const path = await realpath(url)
      if (beside !== undefined) {
        const folder = await realpath(dirname(fileURLToPath(beside)))
        if (!path.startsWith(folder.endsWith(sep) ? folder : folder + sep)) {
          throw failed(
            "a symbolic link leads out of the folder of the document. Allow it with the option allowReference"
          )
        }
      }
      // The path is real: a link at its end has appeared since. Without O_NONBLOCK, a pipe would wait for its writer.
      const file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
      try {
        const stats = await file.stat()
        if (!stats.isFile()) throw failed("it is not a file")
        if (stats.size > maxBytes) return undefined
        const bytes = new Uint8Array(stats.size)
        let length = 0
        while (length < bytes.length) {
          const { bytesRead } = await file.read(bytes, length, bytes.length - length)
          if (bytesRead === 0) break
          length += bytesRead
        }
        return bytes.subarray(0, length)
      } finally {
        await file.close()
      }
    },
    catch: (cause) =>
      cause instanceof OpenApiError ? cause : failed((cause as NodeJS.ErrnoException).code ?? String(cause))
  })
}
