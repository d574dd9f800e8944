/**
 * Texts of the other side's, for a log or a terminal.
 */

// Control characters, what is invisible or changes the direction of writing, line and paragraph separators, halves of pairs.
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

const escape = (char: string): string => `\\u{${char.codePointAt(0)!.toString(16)}}`

const lines = /\r?\n/g
const spaces = /[\n\t]/

/** The text, cut off at `max` UTF-16 units of it. */
export const clip = (text: string, max: number): string => text.length <= max ? text : `${text.slice(0, max)}…`

/** The text, cut off at `max` UTF-16 units of it, with what is not printable escaped; it keeps its lines and tabs. */
export const legible = (text: string, max: number): string =>
  clip(text, max).replace(lines, "\n").replace(unsafe, (char) => spaces.test(char) ? char : escape(char))

/** The text in one line, cut off at `max` UTF-16 units of it, with what is not printable escaped. */
export const printable = (text: string, max: number): string => clip(text, max).replace(unsafe, escape)

/** A name of the server's in a message: quoted, and cut short. */
export const quoted = (name: string): string => JSON.stringify(name.slice(0, 64))
