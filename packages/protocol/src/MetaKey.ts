/**
 * The names of `_meta` keys, and of extensions, which follow the same rule (2025-06-18 and later, basic, `_meta`).
 *
 * A key is an optional prefix and a name: `com.example/trace-id`. The prefix is a series of labels separated by dots and
 * followed by a slash; a label starts with a letter, ends with a letter or a digit, and holds letters, digits and hyphens. The
 * name may be empty, or begins and ends with a letter or a digit and holds letters, digits, hyphens, underscores and dots.
 * All of them are ASCII. Reading a key takes time linear in its length.
 */
import { latest, type Revision } from "./Revision.ts"

/** A key taken apart. */
export interface MetaKey {
  /** The labels of the prefix, in order; empty where the key has no prefix. */
  readonly labels: ReadonlyArray<string>
  /** What follows the slash; the whole key where there is no prefix. */
  readonly name: string
}

/** The keys without a prefix that the specification itself defines: the progress token and the trace context. */
export const unprefixed: ReadonlyArray<string> = ["progressToken", "traceparent", "tracestate", "baggage"]

const isLetter = (code: number): boolean => (code >= 97 && code <= 122) || (code >= 65 && code <= 90)
const isAlphanumeric = (code: number): boolean => isLetter(code) || (code >= 48 && code <= 57)

const isLabel = (text: string): boolean => {
  const last = text.length - 1
  if (last < 0 || !isLetter(text.charCodeAt(0)) || !isAlphanumeric(text.charCodeAt(last))) return false
  for (let i = 1; i < last; i++) {
    const code = text.charCodeAt(i)
    if (!isAlphanumeric(code) && code !== 45) return false
  }
  return true
}

const isName = (text: string): boolean => {
  const last = text.length - 1
  if (last < 0) return true
  if (!isAlphanumeric(text.charCodeAt(0)) || !isAlphanumeric(text.charCodeAt(last))) return false
  for (let i = 1; i < last; i++) {
    const code = text.charCodeAt(i)
    if (!isAlphanumeric(code) && code !== 45 && code !== 95 && code !== 46) return false
  }
  return true
}

/** The labels of the prefix; empty where there is none, `undefined` where it is malformed. */
const labelsOf = (key: string, slash: number): ReadonlyArray<string> | undefined => {
  if (slash < 0) return []
  const labels = key.slice(0, slash).split(".")
  return labels.every(isLabel) ? labels : undefined
}

/** Takes a key apart; `undefined` where it is not a valid key. */
export const parse = (key: string): MetaKey | undefined => {
  const slash = key.indexOf("/")
  const labels = labelsOf(key, slash)
  const name = key.slice(slash + 1)
  return labels === undefined || !isName(name) ? undefined : { labels, name }
}

/** Whether the text is a valid key. The empty text is one: both segments may be missing. */
export const isValid = (key: string): boolean => parse(key) !== undefined

const isOurs = (label: string): boolean => label === "modelcontextprotocol" || label === "mcp"

/** The revisions before 2026-07-28 know of the progress token only, and those before 2025-06-18 of no rule for keys. */
const isReservedName = (key: string, revision: Revision): boolean =>
  key === "progressToken" || (revision >= "2026-07-28" && unprefixed.includes(key))

/**
 * Whether a key is the protocol's own in a revision, the newest by default, so that an application may not define it: its prefix
 * has `modelcontextprotocol` or `mcp` as the second label (in 2025-06-18 as any label but the last), or it is one of
 * {@link unprefixed}. The rest of the key need not be valid.
 */
export const isReserved = (key: string, revision: Revision = latest): boolean => {
  const labels = labelsOf(key, key.indexOf("/"))
  if (labels === undefined) return false
  if (labels.length === 0) return isReservedName(key, revision)
  if (revision < "2025-06-18") return false
  return (revision === "2025-06-18" ? labels.slice(0, -1) : labels.slice(1, 2)).some(isOurs)
}

/** Whether the text can identify an extension: a valid key with a prefix (2026-07-28, versioning, extension negotiation). */
export const isExtensionId = (id: string): boolean => (parse(id)?.labels.length ?? 0) > 0
