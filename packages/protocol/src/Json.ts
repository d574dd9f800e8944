/**
 * JSON texts for the exchange with programs in other languages, in which `JSON.parse` and `JSON.stringify` lose something:
 * the digits of numbers that a JavaScript number cannot hold, such as the 64-bit ids of many APIs, and the form of Unicode
 * that parsers of other languages require.
 *
 * `JSON.parse` rounds `1915883588174806058` to `1915883588174806000`. {@link parse} does so too, and remembers the text of
 * the number by the object that contains it. {@link stringify} writes that text again wherever this object occurs, so that
 * code that passes a value on does not change it. Code that reads a value asks {@link integerIn} first, and refuses it.
 *
 * A copy of an object does not have the texts: {@link carry} copies them. A text without 16 digits in a row, a decimal
 * point included, costs one search.
 *
 * A surrogate without a partner has no UTF-8 form, and parsers of other languages refuse its escape (RFC 8259, 8.2):
 * {@link stringify} writes U+FFFD in its place.
 */
import * as Text from "./Text.ts"

/** A number of a value, by its path. */
export interface Found {
  /** The path from the value, such as `filter.ids[0]`. */
  readonly path: string
  /** The number as its text has it. */
  readonly text: string
}

/** Marks a member in which there is a rounded number. */
const nested = Symbol()

type Marks = Map<string, string | typeof nested>

/** The rounded numbers of objects and arrays, by the names of their members. */
const marksOf = new WeakMap<object, Marks>()
// Most processes never read such a number. Then nothing is searched when messages are written.
let hasMarks = false

// Every rounded number has 16 digits or more, except those with an exponent.
const shortest = 16

const isDigit = (code: number): boolean => (code >= 0x30 && code <= 0x39) || code === 0x2e

/**
 * Whether a text has 16 digits in a row, a decimal point included. It looks at every sixteenth character, and around the
 * digits that it finds there: a regular expression takes a third of the time of `JSON.parse`.
 */
const hasLongNumber = (text: string): boolean => {
  for (let at = shortest - 1; at < text.length; at += shortest) {
    if (!isDigit(text.charCodeAt(at))) continue
    let start = at
    while (isDigit(text.charCodeAt(start - 1))) start--
    let end = at + 1
    while (end - start < shortest && isDigit(text.charCodeAt(end))) end++
    if (end - start >= shortest) return true
  }
  return false
}

const isContainer = (value: unknown): value is object => typeof value === "object" && value !== null

/**
 * Reads JSON text as `JSON.parse` does, and remembers the texts of the numbers that were rounded. Throws as `JSON.parse`
 * does. A number that is the whole text is not remembered.
 */
export const parse = (text: string): unknown => {
  const value: unknown = JSON.parse(text)
  if (isContainer(value) && hasLongNumber(text)) mark(text, value)
  return value
}

/** A container of the text, at the member that is read. */
interface Frame {
  /** The object or array. Undefined in a member that occurs twice, where it has another form the last time. */
  readonly container: object | undefined
  readonly isList: boolean
  key: string
  index: number
  /** Whether the next string is the name of a member. */
  isAtName: boolean
}

const memberOf = ({ container, key }: Frame): unknown =>
  container === undefined ? undefined : (container as { readonly [key: string]: unknown })[key]

const quoteCode = 34
const backslashCode = 92

/** The position after a string that begins at a position. */
const endOfString = (text: string, start: number): number => {
  let end = text.indexOf("\"", start + 1)
  for (;;) {
    let before = end - 1
    while (text.charCodeAt(before) === backslashCode) before--
    if ((end - before) % 2 === 1) return end + 1
    end = text.indexOf("\"", end + 1)
  }
}

const numberText = /-?\d[\d.eE+-]*/y

/** Walks through the text of a value, and marks its rounded numbers. The text is valid. */
const mark = (text: string, root: object): void => {
  const frames: Array<Frame> = []
  const open = (isList: boolean): void => {
    const top = frames.at(-1)
    const value = top === undefined ? root : memberOf(top)
    const container = isContainer(value) && Array.isArray(value) === isList ? value : undefined
    frames.push({ container, isList, key: isList ? "0" : "", index: 0, isAtName: !isList })
  }
  for (let at = 0; at < text.length;) {
    const code = text.charCodeAt(at)
    const top = frames.at(-1)
    switch (code) {
      case quoteCode: {
        const end = endOfString(text, at)
        if (top?.isAtName === true) {
          top.isAtName = false
          top.key = JSON.parse(text.slice(at, end))
        }
        at = end
        continue
      }
      case 0x7b:
      case 0x5b:
        open(code === 0x5b)
        break
      case 0x7d:
      case 0x5d:
        frames.pop()
        break
      case 0x2c:
        if (top!.isList) top!.key = String(++top!.index)
        else top!.isAtName = true
        break
      default:
        if (code === 0x2d || (code >= 0x30 && code <= 0x39)) {
          numberText.lastIndex = at
          const [number] = numberText.exec(text)!
          markMember(frames, number)
          at += number.length
          continue
        }
    }
    at++
  }
}

const markMember = (frames: ReadonlyArray<Frame>, text: string): void => {
  const top = frames.at(-1)!
  const { container, key } = top
  if (container === undefined) return
  // A member that occurs twice has the last of its values.
  if (Number(text) !== memberOf(top) || !isRounded(text)) return void marksOf.get(container)?.delete(key)
  hasMarks = true
  setMark(container, key, text)
  for (let depth = frames.length - 2; depth >= 0; depth--) {
    const { container, key } = frames[depth]!
    if (container === undefined || marksOf.get(container)?.get(key) === nested) return
    setMark(container, key, nested)
  }
}

const setMark = (container: object, key: string, to: string | typeof nested): void => {
  const marks = marksOf.get(container)
  if (marks === undefined) marksOf.set(container, new Map([[key, to]]))
  else marks.set(key, to)
}

/** A number as its significant digits and its exponent, which are the same for each way to write it. */
const canonical = (text: string): string => {
  const [, integer = "", fraction = "", exponent = "0"] = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  const digits = integer + fraction
  let start = 0
  let end = digits.length
  while (start < end && digits.charCodeAt(start) === 0x30) start++
  while (end > start && digits.charCodeAt(end - 1) === 0x30) end--
  return start === end ? "0" : `${digits.slice(start, end)}e${Number(exponent) - fraction.length + digits.length - end}`
}

/** Whether JavaScript writes a number with other digits than its text has. */
const isRounded = (text: string): boolean => text.length > 15 && canonical(text) !== canonical(String(Number(text)))

/** Stands for a number while a text is written. The random part keeps it apart from every text of a value. */
let placeholder: string | undefined

// A backslash, a surrogate pair, or a surrogate without a partner, as JSON text escapes them.
const escapes = /\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[dD][89a-fA-F]../g

const withoutLoneSurrogates = (text: string): string =>
  text.replace(escapes, (escape) => escape.length === 6 ? "\ufffd" : escape)

/** JSON text in which each surrogate without a partner, also an escaped one, is replaced by U+FFFD. */
export const wellFormed = (text: string): string => {
  const wellFormed = Text.wellFormed(text)
  return /\\ud/i.test(wellFormed) ? withoutLoneSurrogates(wellFormed) : wellFormed
}

/**
 * Writes a value as `JSON.stringify` does, in well-formed Unicode, with the texts of the numbers that {@link parse}
 * remembered. `replacer` and `indent` are those of `JSON.stringify`; an object that the replacer returns in place of
 * another one has its numbers. Throws as `JSON.stringify` does.
 */
export const stringify = (
  value: unknown,
  replacer?: (key: string, member: unknown) => unknown,
  indent?: number
): string | undefined => {
  const text: string | undefined = exactText(value, replacer, indent)
  // `JSON.stringify` escapes a surrogate only if it has no partner, so nearly every text is only searched.
  return text?.includes("\\ud") === true ? withoutLoneSurrogates(text) : text
}

/**
 * Writes a value as {@link stringify} does, and leaves surrogates without a partner escaped. Use it for text that is
 * compared and not sent.
 */
export const exactText = (
  value: unknown,
  replacer?: (key: string, member: unknown) => unknown,
  indent?: number
): string | undefined => {
  const text: string | undefined = JSON.stringify(value, replacer, indent)
  if (!hasMarks || text === undefined || !(hasLongNumber(text) || text.includes("e+"))) return text
  const prefix = placeholder ??= globalThis.crypto.randomUUID()
  let isChanged = false
  // A value is replaced by a string first, since `JSON.rawJSON` is missing in Node 20.
  const written = JSON.stringify(value, function(this: object, key: string, member: unknown) {
    const exact = typeof member === "number" ? marksOf.get(this)?.get(key) : undefined
    if (typeof exact === "string" && Number(exact) === member) {
      isChanged = true
      return `${prefix}${exact}`
    }
    if (replacer === undefined) return member
    const replaced = replacer(key, member)
    if (isContainer(member) && isContainer(replaced) && member !== replaced) carry(member, replaced)
    return replaced
  }, indent)
  return isChanged ? written.replaceAll(new RegExp(`"${prefix}([^"]*)"`, "g"), "$1") : written
}

/** A place in a value, with the place that contains it. */
interface Place {
  readonly value: object
  readonly above: Place | undefined
  readonly key: string
}

const isName = /^[A-Za-z_$][\w$]*$/

const pathTo = (place: Place | undefined, last: string, list: boolean): string => {
  const parts: Array<string> = []
  const add = (key: string, isList: boolean) =>
    parts.push(isList ? `[${key}]` : isName.test(key) ? `.${key}` : `[${Text.quote(key)}]`)
  add(last, list)
  for (let at = place; at?.above !== undefined; at = at.above) add(at.key, Array.isArray(at.above.value))
  return Text.clip(parts.reverse().join("").replace(/^\./, ""), 1_024)
}

/**
 * Finds an integer in a value of {@link parse} that was rounded: one beyond 2^53 that JavaScript writes with other digits.
 * Decimal fractions do not count, since they are rounded everywhere. With `only`, it searches that member of the value
 * alone. It costs nothing for a value without one.
 *
 * @example
 * const found = Json.integerIn(Json.parse(`{"id":1915883588174806058}`)) // { path: "id", text: "1915…" }
 */
export const integerIn = (value: unknown, only?: string): Found | undefined => {
  if (!hasMarks || !isContainer(value)) return undefined
  const left: Array<Place> = [{ value, above: undefined, key: "" }]
  for (let place = left.pop(); place !== undefined; place = left.pop()) {
    const { value } = place
    for (const [key, text] of marksOf.get(value) ?? []) {
      if (only !== undefined && place.above === undefined && key !== only) continue
      const member = (value as { readonly [key: string]: unknown })[key]
      if (text === nested) {
        if (isContainer(member)) left.push({ value: member, above: place, key })
      } else if (member === Number(text) && /^-?\d+$/.test(text)) {
        return { path: pathTo(place, key, Array.isArray(value)), text: Text.clip(text, 64) }
      }
    }
  }
  return undefined
}

/** Describes a number that was found, and what its sender can do, as the rest of a sentence about its path. */
export const problem = ({ text }: Found): string =>
  `is ${text}, an integer beyond 2^53 that would be rounded: write it as a string`

/**
 * Copies the remembered texts of an object's own members to its copy. `rename` returns the name of a member in the copy:
 * the same by default.
 */
export const carry = (from: object, to: object, rename: (key: string) => string = (key) => key): void => {
  for (const [key, text] of (hasMarks ? marksOf.get(from) : undefined) ?? []) setMark(to, rename(key), text)
}
