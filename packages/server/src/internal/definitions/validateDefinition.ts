/**
 * What a definition says of itself besides its schemas, and what a block of content says besides its content. The types say most of
 * what these values have to be; the rest is looked at here, since clients that check refuse a whole listing, or a whole answer, for
 * one value that is wrong.
 */
import type * as Common from "@skein/protocol/Common"
import type * as Wire from "@skein/protocol/Content"
import { isObject } from "@skein/protocol/JsonRpc"
import * as MetaKey from "@skein/protocol/MetaKey"
import { quoted } from "../text.ts"

/** The values that are looked at, where a definition has them. */
interface Details {
  readonly icons?: ReadonlyArray<Common.Icon> | undefined
  readonly annotations?: Common.Annotations | undefined
  readonly size?: number | undefined
  readonly websiteUrl?: string | undefined
  readonly _meta?: Common.Meta | undefined
}

// A date, or a date and a time with its offset.
const iso8601 = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?$/

const hasJson = (value: unknown): boolean => {
  try {
    JSON.stringify(value)
    return true
  } catch {
    return false
  }
}

/** "Ensure that the icon URI is either a HTTPS or `data:` URI" (2025-11-25, basic, icons); the schema allows `http:` too. */
const ofIcons = (icons: ReadonlyArray<Common.Icon>): string | undefined => {
  const wrong = icons.find(({ src }) => !isImageUri(src))
  return wrong && `the src of an icon is a https:, http: or data: URI, and not ${quoted(wrong.src)}`
}

const ofAnnotations = ({ lastModified, priority }: Common.Annotations): string | undefined =>
  priority !== undefined && !(priority >= 0 && priority <= 1)
    ? `a priority is a number from 0 to 1, and not ${priority}`
    : lastModified !== undefined && !(iso8601.test(lastModified) && Number.isFinite(Date.parse(lastModified)))
    ? `lastModified is a date and time by ISO 8601, and not ${quoted(lastModified)}`
    : undefined

/** "Unless empty, MUST begin and end with an alphanumeric character" and so on (2025-06-18, basic, `_meta`). */
const ofMeta = (meta: Common.Meta): string | undefined => {
  const wrong = Object.keys(meta).find((key) => !MetaKey.isValid(key))
  if (wrong !== undefined) return `${quoted(wrong)} is no key of _meta`
  return hasJson(meta) ? undefined : "its _meta has no JSON form"
}

const ofSize = (size: number): string | undefined =>
  Number.isSafeInteger(size) && size >= 0 ? undefined : `a size is a whole number of bytes, and not ${size}`

/** What is wrong with the values of a definition, in one line; `undefined` where nothing is. */
export const definitionProblem = (definition: unknown): string | undefined => {
  if (!isObject(definition)) return undefined
  const { _meta, annotations, icons, size, websiteUrl } = definition as Details
  return (icons && ofIcons(icons)) ??
    (annotations && ofAnnotations(annotations)) ??
    (size === undefined ? undefined : ofSize(size)) ??
    (websiteUrl === undefined || isUri(websiteUrl) ? undefined : `the websiteUrl ${quoted(websiteUrl)} is no URI`) ??
    (_meta && ofMeta(_meta))
}

/** What is wrong with contents that a resource has, or that are embedded. */
const ofContents = ({ uri }: Pick<Wire.ResourceContents, "uri">): string | undefined =>
  isUri(uri) ? undefined : `${quoted(uri)} is no URI`

const ofBlock = (block: Wire.ContentBlock): string | undefined => {
  const wrong = block.annotations && ofAnnotations(block.annotations)
  if (wrong !== undefined) return wrong
  if (block.type === "resource") return ofContents(block.resource)
  return block.type === "resource_link" ? ofContents(block) ?? definitionProblem(block) : undefined
}

const checked =
  <B>(of: (value: B) => string | undefined, what: string) =>
  <A extends B>(values: ReadonlyArray<A>): ReadonlyArray<A> => {
    for (const value of values) {
      const wrong = of(value)
      if (wrong !== undefined) throw new TypeError(`The ${what} cannot be sent: ${wrong}`)
    }
    return values
  }

/** The blocks that a handler answers with. Throws where a value of theirs is none that may be sent. */
export const checkBlocks = /* @__PURE__ */ checked(ofBlock, "content of the answer")

/** The contents that a reader answers with. Throws likewise. */
export const checkContents = /* @__PURE__ */ checked(ofContents, "contents of the resource")

// A scheme and a colon, then an authority (a user, a name or an IPv6 literal, a port), a path with a query, and a fragment, of the
// characters that each may hold.
const unreserved = "[\\w\\-.~!$&'()*+,;=]|%[\\da-f]{2}"
const authority = `//(?:(?:${unreserved}|:)*@)?(?:\\[[\\da-f:.]+\\]|(?:${unreserved})*)(?::\\d*)?(?=[/?#]|$)`
const character = `${unreserved}|[:/?@]`
const rfc3986 = /* @__PURE__ */ new RegExp(
  `^[a-z][a-z\\d+.-]*:(?:${authority}|(?!//))(?:${character})*(?:#(?:${character})*)?$`,
  "i"
)

/** Whether a text is a URI. */
export const isUri = (text: string): boolean => rfc3986.test(text)

/** The same for what a client loads by itself: an image may stand in it whole, which need not be looked through by the letter. */
export const isImageUri = (text: string): boolean =>
  /^data:[\x21-\x7e]*$/i.test(text) || (/^https?:/i.test(text) && isUri(text))
