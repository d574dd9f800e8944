/** How values and keys are written by stores whose keys or texts are limited: file names, columns, other stores. */
import { sha256Base64Url } from "@skein/runtime/Digest"
import type * as Effect from "effect/Effect"

/**
 * Returns the name of a key: 43 letters, digits, `-` and `_`, which are the SHA-256 of its JSON. A key may be longer than
 * a file name or an index can be, and JSON also distinguishes characters that UTF-8 does not have (lone surrogates).
 */
export const nameOf = (key: string): Effect.Effect<string> => sha256Base64Url(JSON.stringify(key))

/** Writes a value as JSON, which has neither NUL nor lone surrogates: databases refuse these. */
export const encodeValue = (value: string): string => JSON.stringify(value)

/**
 * Reads a text of `encodeValue`; `undefined` for any other text. The error of `JSON.parse` quotes the text, so it
 * is not passed on.
 */
export const decodeValue = (text: string): string | undefined => {
  const value = parseJson(text)
  return typeof value === "string" ? value : undefined
}

/** Parses JSON; `undefined` if it is not JSON. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
