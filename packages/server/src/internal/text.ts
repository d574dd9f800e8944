/** The longest text about arguments that do not fit, in UTF-16 units: what is sent could make it many times as long as itself. */
export const maxProblem = 4096

/** A text of the other side's, or about it, up to a bound: what is quoted is not to be larger than what it is about. */
export const clip = (text: string, max = 128): string => text.length <= max ? text : `${text.slice(0, max)}…`

/** The same in quotes, with what is not printable escaped. */
export const quoted = (text: string): string => JSON.stringify(clip(text))

/** The same in a line of the log, in quotes where it could look like a line: a text may hold line breaks and what moves the cursor. */
export const logged = (text: string): string => {
  const clipped = clip(text)
  return /^[\x21-\x7e]+…?$/.test(clipped) ? clipped : JSON.stringify(clipped)
}
