/**
 * Reads the body of an HTTP answer up to a bound.
 *
 * It stops at the bound and closes the stream, so that an endless answer costs no more than the bound.
 */
import { ByteBuffer } from "@skein/runtime/ByteBuffer"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { HttpClientError } from "effect/http/HttpClientError"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"

/** The bytes of a body, at most as many as were asked for, and whether it has more. */
export interface Body {
  readonly bytes: Uint8Array
  readonly isCut: boolean
}

/** Reads at most `maxBytes` bytes of a body. */
export const read = (response: HttpClientResponse, maxBytes: number): Effect.Effect<Body, HttpClientError> =>
  Effect.suspend(() => {
    const buffer = new ByteBuffer()
    return response.stream.pipe(
      Stream.takeUntil((chunk) => {
        buffer.add(chunk, true)
        return buffer.size > maxBytes
      }),
      Stream.runDrain,
      // An answer without a body, such as 204, has no stream.
      Effect.catchIf(({ reason }) => reason._tag === "EmptyBodyError", () => Effect.void),
      Effect.map(() => ({ bytes: buffer.bytes.subarray(0, maxBytes), isCut: buffer.size > maxBytes }))
    )
  })
