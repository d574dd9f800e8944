/**
 * Shortens and quotes untrusted text, such as the message of a peer, for an error message, a log line or a terminal.
 *
 * - {@link clip} shortens, for text that needs no protection, and {@link cut} does so without a mark.
 * - {@link quote} shortens and quotes, for a name inside a sentence.
 * - {@link logValue} quotes only where needed, for a field of a log line.
 * - {@link printable} and {@link printableLines} escape control characters, for text that is shown as it is.
 * - {@link withoutColors} removes the colors of a program's output, which these would escape.
 *
 * Lengths are in UTF-16 units. Every function takes time linear in the length of its result.
 */

const isPairAt = (text: string, at: number): boolean =>
  (text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00

/**
 * The first `maxLength` units of a text, without a mark where it was longer. A surrogate pair is never cut in half: the
 * result is one unit shorter instead. Use it for names with a bound and for text that is shortened before other work;
 * text that a person reads is shortened by {@link clip}.
 *
 * @example
 * Text.cut("smile 😀", 7) // "smile "
 */
export const cut = (text: string, maxLength: number): string =>
  text.length <= maxLength ? text : text.slice(0, isPairAt(text, maxLength - 1) ? maxLength - 1 : maxLength)

/**
 * Shortens a text to `maxLength` units and appends "…" where it was longer. The default is 128. A surrogate pair is
 * never cut in half: the result is one unit shorter instead.
 *
 * @example
 * Text.clip("a long text", 6) // "a long…"
 */
export const clip = (text: string, maxLength = 128): string =>
  text.length <= maxLength ? text : `${cut(text, maxLength)}…`

// Control characters; invisible characters and those that change the direction of writing; line and paragraph
// separators; surrogates without a partner.
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

// `JSON.stringify` escapes only a part of the unprintable characters.
const quoted = (text: string): string => JSON.stringify(text).replace(unprintable, escapeJson)

const escapeJson = (character: string): string =>
  Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`)
    .join("")

/**
 * Shortens a text as {@link clip} does and writes it as a JSON string: in quotes, with quotes, line breaks and other
 * unprintable characters escaped.
 *
 * @example
 * `unknown tool ${Text.quote(name)}` // unknown tool "add\nall"
 */
export const quote = (text: string, maxLength = 128): string => quoted(clip(text, maxLength))

const word = /^[\x21-\x7e]+…?$/

/**
 * Shortens a text as {@link clip} does and makes it one field of a log line. A word of printable ASCII stays as it is.
 * Any other text, the empty one included, is quoted, so that it cannot look like another field or another line.
 *
 * @example
 * `method=${Text.logValue(method)}` // method=tools/call, or method="a\nb"
 */
export const logValue = (text: string, maxLength = 128): string => {
  const clipped = clip(text, maxLength)
  return word.test(clipped) ? clipped : quoted(clipped)
}

const escape = (character: string): string => `\\u{${character.codePointAt(0)!.toString(16)}}`

/**
 * Shortens a text as {@link clip} does and escapes unprintable characters as `\u{…}`, so that the text is one line and
 * cannot control a terminal. It is not quoted: its spaces, quotes and backslashes stay.
 *
 * @example
 * Text.printable("red\u001b[31m\nalert", 4096) // red\u{1b}[31m\u{a}alert
 */
export const printable = (text: string, maxLength: number): string => clip(text, maxLength).replace(unprintable, escape)

/**
 * Escapes as {@link printable} does, but keeps tabs and line breaks. CRLF becomes LF; a CR alone is escaped.
 *
 * @example
 * Text.printableLines("first\r\nsecond\u0007", 4096) // "first\nsecond\\u{7}"
 */
export const printableLines = (text: string, maxLength: number): string =>
  clip(text, maxLength)
    .replace(/\r?\n/g, "\n")
    .replace(unprintable, (character) => character === "\n" || character === "\t" ? character : escape(character))

// SGR of ECMA-48.
const controlCharacter = "\u001b"
const color = /* @__PURE__ */ new RegExp(`${controlCharacter}\\[[\\d;:]*m`, "g")

/**
 * Removes the sequences that set colors and styles in a terminal (SGR). Some programs write them also where they do not
 * write to a terminal. Other control sequences stay: escape them with {@link printableLines}.
 *
 * @example
 * Text.withoutColors("\u001b[31mred\u001b[0m") // red
 */
export const withoutColors = (text: string): string => text.replace(color, "")

/**
 * Replaces each surrogate without a partner by U+FFFD, since it has no UTF-8 encoding. It does the same as
 * `String.prototype.toWellFormed`, which some browsers lack.
 */
export const wellFormed = (text: string): string => {
  const native = (text as { readonly toWellFormed?: () => string }).toWellFormed
  return native === undefined ? text.replace(/\p{Surrogate}/gu, "\ufffd") : native.call(text)
}

/** How many changes of a character may lead to a suggestion. */
const maxDistance = 2

// A peer can list many long names, and the time of a comparison is the product of two lengths.
const [maxNames, maxNameLength] = [1_000, 64]

/** How many characters must be inserted, deleted, replaced or swapped to make one text the other. */
const distance = (one: string, other: string): number => {
  let before: Array<number> = []
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let at = 1; at <= one.length; at++) {
    const next = [at]
    for (let to = 1; to <= other.length; to++) {
      const isSame = one[at - 1] === other[to - 1]
      const isSwapped = at > 1 && to > 1 && one[at - 1] === other[to - 2] && one[at - 2] === other[to - 1]
      const best = Math.min(row[to]! + 1, next[to - 1]! + 1, row[to - 1]! + (isSame ? 0 : 1))
      next.push(isSwapped ? Math.min(best, before[to - 2]! + 1) : best)
    }
    before = row
    row = next
  }
  return row[other.length]!
}

/**
 * The name that a text with at most two mistakes means, for "did you mean …?"; `undefined` if no name is near. Compares the
 * first 1,000 names, and texts of at most 64 characters, without regard to case.
 *
 * @example
 * Text.nearest("breww", ["brew", "steep"]) // "brew"
 */
export const nearest = (text: string, names: ReadonlyArray<string>): string | undefined => {
  if (text.length > maxNameLength) return undefined
  let found: string | undefined
  let least = Math.min(maxDistance, text.length - 1)
  for (const name of names.slice(0, maxNames)) {
    if (Math.abs(name.length - text.length) > least) continue
    const changes = distance(text.toLowerCase(), name.toLowerCase())
    if (changes > least || (found !== undefined && changes === least)) continue
    found = name
    least = changes
  }
  return found
}
