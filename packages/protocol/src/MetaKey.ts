/**
 * The syntax of `_meta` keys and of extension identifiers (2025-06-18 and later, basic, `_meta`).
 *
 * A key is an optional prefix and a name, as in `com.example/trace-id`. The prefix is labels separated by dots,
 * followed by a slash. A label starts with a letter, ends with a letter or a digit, and contains letters, digits and
 * hyphens. The name is empty, or it starts and ends with a letter or a digit and contains letters, digits, hyphens,
 * underscores and dots. All characters are ASCII.
 *
 * Every function takes time linear in the length of the key.
 */
import { latest, type Revision } from "./Revision.ts"

/** The parts of a key. */
export interface MetaKey {
  /** The labels of the prefix, in order. Empty where the key has no prefix. */
  readonly labels: ReadonlyArray<string>
  /** The text after the slash, or the whole key where it has no prefix. */
  readonly name: string
}

/** The keys without a prefix that the specification defines: the progress token and the trace context. */
export const unprefixed: ReadonlyArray<string> = ["progressToken", "traceparent", "tracestate", "baggage"]

/**
 * The key of this project for the names that the tools of a page have in a server around its own: an object of the new
 * names by the names that the page knows. A server that mounts or renames tools of MCP Apps adds it to the tools that are
 * linked to a page, and to their results.
 *
 * @example
 * const name = (toolInfo.tool._meta?.[MetaKey.toolNames] as { [name: string]: string })["add_sale"] // "shop_add_sale"
 */
export const toolNames = "io.github.skein-mcp/tool-names"

/**
 * The key of this project for the reference of an unexpected failure, in the `_meta` of the result of a tool. The log of
 * the server has the cause with the same reference.
 */
export const reference = "io.github.skein-mcp/reference"

const label = /^[a-z](?:[a-z\d-]*[a-z\d])?$/i
const nameSyntax = /^(?:[a-z\d](?:[\w.-]*[a-z\d])?)?$/i

/** Returns the labels of the prefix: empty without a prefix, `undefined` if the prefix is malformed. */
const labelsOf = (key: string, slash: number): ReadonlyArray<string> | undefined => {
  if (slash < 0) return []
  const labels = key.slice(0, slash).split(".")
  return labels.every((text) => label.test(text)) ? labels : undefined
}

/**
 * Splits a key into its parts. Returns `undefined` where it is not valid.
 *
 * @example
 * MetaKey.parse("com.example/trace-id") // { labels: ["com", "example"], name: "trace-id" }
 */
export const parse = (key: string): MetaKey | undefined => {
  const slash = key.indexOf("/")
  const labels = labelsOf(key, slash)
  const name = key.slice(slash + 1)
  return labels === undefined || !nameSyntax.test(name) ? undefined : { labels, name }
}

/** Whether the text is a valid key. The empty text is valid, because both the prefix and the name may be missing. */
export const isValid = (key: string): boolean => parse(key) !== undefined

const isProtocolLabel = (label: string): boolean => label === "modelcontextprotocol" || label === "mcp"

/** Before 2026-07-28 only the progress token is reserved without a prefix. */
const isReservedName = (key: string, revision: Revision): boolean =>
  key === "progressToken" || (revision >= "2026-07-28" && unprefixed.includes(key))

/**
 * Whether the protocol reserves a key in a revision, by default the newest. An application must not define a reserved
 * key.
 *
 * A key is reserved if the second label of its prefix is `modelcontextprotocol` or `mcp` (in 2025-06-18 any label but
 * the last), or if it is one of {@link unprefixed}. Before 2025-06-18 there is no rule for prefixes. The name of the
 * key need not be valid.
 *
 * @example
 * MetaKey.isReserved("io.modelcontextprotocol/related-task") // true
 */
export const isReserved = (key: string, revision: Revision = latest): boolean => {
  const labels = labelsOf(key, key.indexOf("/"))
  if (labels === undefined) return false
  if (labels.length === 0) return isReservedName(key, revision)
  if (revision < "2025-06-18") return false
  return (revision === "2025-06-18" ? labels.slice(0, -1) : labels.slice(1, 2)).some(isProtocolLabel)
}
