/**
 * Reads the body of an HTTP answer up to a bound.
 *
 * It stops at the bound and closes the stream, so that an endless answer costs no more than the bound.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { HttpClientError } from "effect/http/HttpClientError"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"

/** The bytes of a body, at most as many as were asked for, and whether it has more. */
export interface Body {
  readonly bytes: Uint8Array
  readonly isCut: boolean
}

const join = (chunks: ReadonlyArray<Uint8Array>, size: number): Uint8Array => {
  const bytes = new Uint8Array(size)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk.subarray(0, size - at), at)
    at += Math.min(chunk.length, size - at)
  }
  return bytes
}

/** Reads at most `maxBytes` bytes of a body. */
export const read = (response: HttpClientResponse, maxBytes: number): Effect.Effect<Body, HttpClientError> =>
  Effect.suspend(() => {
    let total = 0
    return response.stream.pipe(
      Stream.takeUntil((chunk) => (total += chunk.length) > maxBytes),
      Stream.runCollect,
      Effect.map((chunks) => ({ bytes: join(chunks, Math.min(total, maxBytes)), isCut: total > maxBytes })),
      // An answer without a body, such as 204, has no stream.
      Effect.catchIf(
        ({ reason }) => reason._tag === "EmptyBodyError",
        () => Effect.succeed({ bytes: new Uint8Array(0), isCut: false })
      )
    )
  })
