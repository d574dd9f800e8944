/**
 * Percent-encoding for URI templates (RFC 6570). No function throws, and each takes linear time.
 */
import { wellFormed } from "../../Text.ts"

const encode = (text: string): string => encodeURIComponent(wellFormed(text))

const hex = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`

/** Encodes all characters except unreserved ones. */
export const encodeUnreserved = (text: string): string =>
  text.replace(/[^A-Za-z0-9\-._~]+/g, (run) => encode(run).replace(/[!'()*]/g, hex))

/** Encodes all characters except unreserved and reserved ones. Percent-encoding in the text stays. */
export const encodeReserved = (text: string): string =>
  text.replace(/%(?![0-9A-Fa-f]{2})/g, "%25").replace(/[^A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]+/g, encode)

const uncommon = /[^A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=]/

/** Normalizes a URI: encodes the characters that must be encoded, and writes percent-encoding in upper case. */
export const normalize = (uri: string): string =>
  uncommon.test(uri)
    ? encodeReserved(uri.replace(/%(?:[a-f][0-9A-Fa-f]|[0-9A-F][a-f])/g, (triplet) => triplet.toUpperCase()))
    : uri

/** Decodes percent-encoded UTF-8. Returns `undefined` for a text that is not valid percent-encoded UTF-8. */
export const decode = (text: string): string | undefined => {
  if (!text.includes("%")) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
