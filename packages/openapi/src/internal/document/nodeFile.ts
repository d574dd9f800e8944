/**
 * Reads documents from files, for programs that run in Node.
 */
import * as Effect from "effect/Effect"
import { LimitExceeded, LoadFailed, OpenApiError } from "../../OpenApiError.ts"

const codeOf = (cause: unknown): string =>
  (cause as { readonly code?: string } | null)?.code ?? (cause instanceof Error ? cause.message : String(cause))

/** Reads a file of at most `maxBytes` bytes. */
export const readFile = (url: URL, maxBytes: number): Effect.Effect<Uint8Array, OpenApiError> => {
  const failed = (cause: unknown) =>
    cause instanceof OpenApiError ? cause : new OpenApiError({
      reason: new LoadFailed({ message: `Cannot read the document ${url.href}: ${codeOf(cause)}`, url: url.href })
    })
  return Effect.tryPromise({
    try: async (signal) => {
      const { readFile, stat } = await import("node:fs/promises")
      const { size } = await stat(url)
      if (size > maxBytes) {
        throw new OpenApiError({
          reason: new LimitExceeded({
            message: `The document ${url.href} has ${size} bytes, more than maxDocumentBytes (${maxBytes})`,
            limit: "maxDocumentBytes"
          })
        })
      }
      return readFile(url, { signal })
    },
    catch: failed
  })
}
