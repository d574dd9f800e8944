/**
 * Serialises the values of parameters by their style (OpenAPI 3.1, "Style Values" and "Style Examples").
 *
 * A value of a model can contain every character. Each one that could end its place in the URL is percent-encoded.
 */
import { isObject } from "@skein/protocol/JsonRpc"
import { wellFormed } from "@skein/protocol/Text"

/** The serialisations of a parameter. */
export type Style =
  | "simple"
  | "label"
  | "matrix"
  | "form"
  | "spaceDelimited"
  | "pipeDelimited"
  | "deepObject"
  | "cookie"

/** How a parameter is serialised. */
export interface Serialization {
  /** The name in the request. */
  readonly key: string
  readonly style: Style
  /** Whether the items of a list, and the members of an object, are separate. */
  readonly explode: boolean
  /** Whether characters such as `/` and `:` stay as they are in a query. */
  readonly allowReserved: boolean
}

/**
 * Headers that are not arguments: credentials, which a model must not choose, and those that belong to the connection or to
 * the body.
 */
export const reservedHeaders = [
  "accept",
  "authorization",
  "connection",
  "content-length",
  "content-type",
  "cookie",
  "expect",
  "host",
  "proxy-authorization",
  "transfer-encoding",
  "upgrade"
] as const

/** Returns the problem of a text that is sent as a header, if it has one. */
export const headerProblem = (text: string): string | undefined =>
  /^[\t\x20-\x7e\x80-\xff]*$/.test(text)
    ? undefined
    : "must be Latin-1 text without line breaks, since it is sent as a header"

type Encode = (text: string) => string

/** Percent-encodes a text, except for the unreserved characters of RFC 3986. */
export const encode: Encode = (text) =>
  encodeURIComponent(wellFormed(text)).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`
  )

// `&`, `=`, `+` and `#` would begin another parameter, or the fragment, and stay encoded.
const encodeReserved: Encode = (text) =>
  encode(text).replaceAll(/%(?:3A|2F|3F|40|5B|5D|21|24|27|28|29|2A|2C|3B)/g, (escaped) => decodeURIComponent(escaped))

const plain: Encode = (text) => wellFormed(text)

/** The JSON text of a value. A surrogate without a partner becomes U+FFFD, since JSON for exchange is UTF-8 (RFC 8259, 8.1). */
export const toJson = (value: unknown): string =>
  JSON.stringify(value, (_, member: unknown) => typeof member === "string" ? wellFormed(member) : member)

/** The text of a value. A nested list or object is written as JSON, since no style describes it. */
export const textOf = (value: unknown): string =>
  typeof value === "string"
    ? value
    : typeof value === "object" && value !== null
    ? toJson(value)
    : String(value)

/** The members of an object, without those that have no value. */
const membersOf = (value: object): ReadonlyArray<readonly [string, unknown]> =>
  Object.entries(value).filter(([, member]) => member !== undefined)

/** The keys and values of an object, one after the other: `role,admin,name,Ada`. */
const flat = (value: object, write: Encode): ReadonlyArray<string> =>
  membersOf(value).flatMap(([key, member]) => [write(key), write(textOf(member))])

const pairs = (value: object, write: Encode): ReadonlyArray<string> =>
  membersOf(value).map(([key, member]) => `${write(key)}=${write(textOf(member))}`)

const listed = (value: unknown, write: Encode): ReadonlyArray<string> =>
  Array.isArray(value)
    ? value.map((item) => write(textOf(item)))
    : isObject(value)
    ? flat(value, write)
    : [write(textOf(value))]

/** Serialises a value in the style `simple`: of a path or of a header. */
const simple = (value: unknown, explode: boolean, write: Encode): string =>
  (explode && isObject(value) ? pairs(value, write) : listed(value, write)).join(",")

/** Serialises the value of a path parameter. */
export const forPath = ({ explode, key, style }: Serialization, value: unknown): string => {
  if (style === "label") {
    const parts = explode && isObject(value) ? pairs(value, encode) : listed(value, encode)
    return `.${parts.join(explode ? "." : ",")}`
  }
  if (style === "matrix") {
    const name = encode(key)
    if (explode && isObject(value)) return pairs(value, encode).map((pair) => `;${pair}`).join("")
    if (explode && Array.isArray(value)) return listed(value, encode).map((item) => `;${name}=${item}`).join("")
    return `;${name}=${listed(value, encode).join(",")}`
  }
  return simple(value, explode, encode)
}

/** Serialises the value of a header. */
export const forHeader = ({ explode }: Serialization, value: unknown): string => simple(value, explode, plain)

// The characters of a cookie's value (RFC 6265, 4.1.1). Others, such as `;`, would begin another cookie.
const encodeCookie: Encode = (text) =>
  wellFormed(text).replaceAll(/[^\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+/g, encode)

/**
 * Serialises the value of a cookie. In the style `form`, a list is written with commas, since a cookie has one value. In
 * the style `cookie` of OpenAPI 3.2, only characters that a cookie cannot have are encoded, and exploded values are
 * cookies of their own.
 */
export const forCookie = ({ explode, key, style }: Serialization, value: unknown): string => {
  const name = encode(key)
  if (style !== "cookie") return `${name}=${listed(value, encode).join(",")}`
  if (explode && isObject(value)) return pairs(value, encodeCookie).join("; ")
  if (explode && Array.isArray(value)) return listed(value, encodeCookie).map((item) => `${name}=${item}`).join("; ")
  return `${name}=${listed(value, encodeCookie).join(",")}`
}

/** The members of nested objects and lists as `filter[a][b]`, in the order of the value. */
const deep = (name: string, value: unknown): ReadonlyArray<readonly [string, string]> =>
  typeof value === "object" && value !== null
    ? membersOf(value).flatMap(([key, member]) => deep(`${name}[${key}]`, member))
    : [[name, textOf(value)]]

const separators: Readonly<Partial<Record<Style, string>>> = { form: ",", spaceDelimited: "%20", pipeDelimited: "%7C" }

/**
 * Serialises the value of a query parameter, or of a field of a form, as pairs of encoded names and values. An empty list
 * and an empty object have no pair.
 */
export const forQuery = (
  { allowReserved, explode, key, style }: Serialization,
  value: unknown
): ReadonlyArray<readonly [string, string]> => {
  const write = allowReserved ? encodeReserved : encode
  const name = encode(key)
  if (typeof value !== "object" || value === null) return [[name, write(textOf(value))]]
  if (style === "deepObject") return deep(key, value).map(([path, text]) => [encode(path), write(text)])
  if (membersOf(value).length === 0) return []
  if (!explode) return [[name, listed(value, write).join(separators[style] ?? ",")]]
  return Array.isArray(value)
    ? value.map((item) => [name, write(textOf(item))] as const)
    : membersOf(value).map(([member, each]) => [encode(member), write(textOf(each))] as const)
}

/** Serialises the value of a whole query, by its media type: a form, or a text. */
export const forQuerystring = (mediaType: string, value: unknown): ReadonlyArray<readonly [string, string]> =>
  /^application\/x-www-form-urlencoded\b/i.test(mediaType) && isObject(value)
    ? membersOf(value).flatMap(([key, member]) =>
      forQuery({ key, style: "form", explode: true, allowReserved: false }, member)
    )
    : [[encode(/[/+]json\b/i.test(mediaType) ? toJson(value) : textOf(value)), ""]]
