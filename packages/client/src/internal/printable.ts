/**
 * Texts of the other side's, for a log or a terminal.
 */

// Control characters, line and paragraph separators, what changes the direction of writing, and halves of pairs.
const unsafe = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|\p{Surrogate}/gu

const escape = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`

/** The text in one line, cut off at `max` UTF-16 units of it, with what is not printable escaped. */
export const printable = (text: string, max: number): string => {
  const cut = text.length <= max ? text : `${text.slice(0, max)}…`
  return cut.replace(unsafe, escape)
}
