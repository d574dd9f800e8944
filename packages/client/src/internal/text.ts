/**
 * Escapes and shortens texts of the other side for a log or a terminal.
 */

// Control characters, invisible characters and those that change the direction of writing, line and paragraph
// separators, lone surrogates.
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

const escape = (char: string): string => `\\u{${char.codePointAt(0)!.toString(16)}}`

const lines = /\r?\n/g
const spaces = /[\n\t]/

/** The text, cut off after `max` UTF-16 units. */
export const clip = (text: string, max: number): string => text.length <= max ? text : `${text.slice(0, max)}…`

/** The text, cut off after `max` UTF-16 units, with unprintable characters escaped except for line breaks and tabs. */
export const legible = (text: string, max: number): string =>
  clip(text, max).replace(lines, "\n").replace(unsafe, (char) => spaces.test(char) ? char : escape(char))

/** The text in one line, cut off after `max` UTF-16 units, with unprintable characters escaped. */
export const printable = (text: string, max: number): string => clip(text, max).replace(unsafe, escape)

/** A name that the server sent, quoted and shortened for a message. */
export const quoted = (name: string): string => JSON.stringify(name.slice(0, 64))
