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
 * `LoadFailed`.
 */
export const readFile = (url: URL, maxBytes: number): Effect.Effect<Uint8Array | undefined, OpenApiError> =>
  Effect.tryPromise({
    try: async (signal) => {
      const { readFile, stat } = await import("node:fs/promises")
      const { size } = await stat(url)
      return size > maxBytes ? undefined : readFile(url, { signal })
    },
    catch: (cause) =>
      new OpenApiError({
        reason: new LoadFailed({
          message: `Cannot read the document ${url.href}: ${(cause as NodeJS.ErrnoException).code ?? String(cause)}`,
          url: url.href
        })
      })
  })
