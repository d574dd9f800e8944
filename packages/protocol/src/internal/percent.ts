/**
 * Percent-encoding as RFC 6570 needs it. Nothing here throws, and all of it is linear.
 */

const encode = (text: string): string => {
  try {
    return encodeURIComponent(text)
  } catch {
    // A surrogate without its partner has no UTF-8.
    return encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\ufffd"))
  }
}

const hex = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`

/** Encodes everything but the unreserved characters. */
export const encodeUnreserved = (text: string): string =>
  text.replace(/[^A-Za-z0-9\-._~]+/g, (run) => encode(run).replace(/[!'()*]/g, hex))

/** Encodes everything but the unreserved and reserved characters and what is percent-encoded already. */
export const encodeReserved = (text: string): string =>
  text.replace(
    /%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]+/g,
    (run) => run === "%" ? "%25" : encode(run)
  )

/** One spelling for every URI: encoded where it must be, and with percent-encoding in upper case. */
export const canonical = (uri: string): string => {
  const encoded = encodeReserved(uri)
  return encoded.includes("%") ? encoded.replace(/%[0-9A-Fa-f]{2}/g, (triplet) => triplet.toUpperCase()) : encoded
}

/** Decodes percent-encoded UTF-8; `undefined` where it is not. */
export const decode = (text: string): string | undefined => {
  if (!text.includes("%")) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
