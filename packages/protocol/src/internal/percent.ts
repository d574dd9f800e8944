/**
 * Percent-encoding as RFC 6570 needs it. Nothing here throws, and all of it is linear.
 */

/** A surrogate without its partner has no UTF-8: it becomes the replacement character. */
export const wellFormed = (text: string): string => {
  const native = (text as { readonly toWellFormed?: () => string }).toWellFormed
  return native === undefined ? text.replace(/\p{Surrogate}/gu, "\ufffd") : native.call(text)
}

const encode = (text: string): string => encodeURIComponent(wellFormed(text))

const hex = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`

/** Encodes everything but the unreserved characters. */
export const encodeUnreserved = (text: string): string =>
  text.replace(/[^A-Za-z0-9\-._~]+/g, (run) => encode(run).replace(/[!'()*]/g, hex))

/** Encodes everything but the unreserved and reserved characters and what is percent-encoded already. */
export const encodeReserved = (text: string): string =>
  text.replace(/%(?![0-9A-Fa-f]{2})/g, "%25").replace(/[^A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]+/g, encode)

const uncommon = /[^A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=]/

/** One spelling for every URI: encoded where it must be, and with percent-encoding in upper case. */
export const canonical = (uri: string): string =>
  uncommon.test(uri)
    ? encodeReserved(uri.replace(/%(?:[a-f][0-9A-Fa-f]|[0-9A-F][a-f])/g, (triplet) => triplet.toUpperCase()))
    : uri

/** Decodes percent-encoded UTF-8; `undefined` where it is not. */
export const decode = (text: string): string | undefined => {
  if (!text.includes("%")) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
