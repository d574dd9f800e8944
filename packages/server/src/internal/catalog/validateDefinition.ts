/**
 * Validates the values of definitions besides their schemas, and the values of content blocks besides their content.
 *
 * The types express most of the rules. The remaining ones are checked here, because a validating client refuses a whole
 * list, or a whole answer, for one invalid value.
 */
import type { Icon } from "@skein/protocol/BaseMetadata"
import type { Annotations } from "@skein/protocol/Content"
import type { Meta } from "@skein/protocol/Message"
import type * as Wire from "@skein/protocol/Content"
import { isObject } from "@skein/protocol/JsonRpc"
import * as MetaKey from "@skein/protocol/MetaKey"
import { quote } from "@skein/protocol/Text"
import { jsonOf } from "../base/json.ts"

/** The values that are validated, if a definition has them. */
interface Details {
  readonly icons?: ReadonlyArray<Icon> | undefined
  readonly annotations?: Annotations | undefined
  readonly size?: number | undefined
  readonly websiteUrl?: string | undefined
  readonly _meta?: Meta | undefined
}

// A date, or a date and a time with its offset.
const iso8601 = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?$/

/**
 * "Ensure that the icon URI is either a HTTPS or `data:` URI" (2025-11-25, basic, icons); the schema allows `http:`
 * too.
 */
const ofIcons = (icons: ReadonlyArray<Icon>): string | undefined => {
  const wrong = icons.find(({ src }) => !isImageUri(src))
  return wrong && `the src of an icon must be an https:, http: or data: URI, not ${quote(wrong.src)}`
}

const ofAnnotations = ({ lastModified, priority }: Annotations): string | undefined =>
  priority !== undefined && !(priority >= 0 && priority <= 1)
    ? `a priority must be a number from 0 to 1, not ${priority}`
    : lastModified !== undefined && !(iso8601.test(lastModified) && Number.isFinite(Date.parse(lastModified)))
    ? `lastModified must be a date and time in ISO 8601, not ${quote(lastModified)}`
    : undefined

/** "Unless empty, MUST begin and end with an alphanumeric character" and so on (2025-06-18, basic, `_meta`). */
const ofMeta = (meta: Meta): string | undefined => {
  const wrong = Object.keys(meta).find((key) => !MetaKey.isValid(key))
  if (wrong !== undefined) return `${quote(wrong)} is not a valid key of _meta`
  return jsonOf(meta) === undefined ? "its _meta has no JSON form" : undefined
}

const ofSize = (size: number): string | undefined =>
  Number.isSafeInteger(size) && size >= 0 ? undefined : `a size must be a whole number of bytes, not ${size}`

/** Returns one line about the first invalid value of a definition, or `undefined` if all are valid. */
export const definitionProblem = (definition: unknown): string | undefined => {
  if (!isObject(definition)) return undefined
  const { _meta, annotations, icons, size, websiteUrl } = definition as Details
  return (icons && ofIcons(icons)) ??
    (annotations && ofAnnotations(annotations)) ??
    (size === undefined ? undefined : ofSize(size)) ??
    (websiteUrl === undefined || isUri(websiteUrl)
      ? undefined
      : `the websiteUrl ${quote(websiteUrl)} is not a valid URI`) ??
    (_meta && ofMeta(_meta))
}

/** Returns one line about invalid contents of a resource. */
const ofContents = ({ uri }: Pick<Wire.ResourceContents, "uri">): string | undefined =>
  isUri(uri) ? undefined : `${quote(uri)} is not a valid URI`

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
      if (wrong !== undefined) throw new TypeError(`invalid ${what}: ${wrong}`)
    }
    return values
  }

/** Returns the content blocks of an answer. Throws if one of them has an invalid value. */
export const checkBlocks = /* @__PURE__ */ checked(ofBlock, "content of a result")

/** Returns the contents of a resource. Throws if one of them has an invalid URI. */
export const checkContents = /* @__PURE__ */ checked(ofContents, "contents of a resource")

// A scheme and a colon, then an authority (a user, a name or an IPv6 literal, a port), a path with a query, and a
// fragment, each with its allowed characters.
const unreserved = "[\\w\\-.~!$&'()*+,;=]|%[\\da-f]{2}"
const authority = `//(?:(?:${unreserved}|:)*@)?(?:\\[[\\da-f:.]+\\]|(?:${unreserved})*)(?::\\d*)?(?=[/?#]|$)`
const character = `${unreserved}|[:/?@]`
const rfc3986 = /* @__PURE__ */ new RegExp(
  `^[a-z][a-z\\d+.-]*:(?:${authority}|(?!//))(?:${character})*(?:#(?:${character})*)?$`,
  "i"
)

/**
 * Whether a text is a URI by RFC 3986: "Custom URI schemes MUST be in accordance with RFC3986" (2025-06-18, resources).
 * Validating clients refuse a whole list for one invalid URI.
 */
export const isUri = (text: string): boolean => rfc3986.test(text)

/**
 * Whether a text is a URI that a client may load as an image. The characters of a `data:` URI are checked less
 * strictly, since it may be large.
 */
const isImageUri = (text: string): boolean =>
  /^data:[\x21-\x7e]*$/i.test(text) || (/^https?:/i.test(text) && isUri(text))
