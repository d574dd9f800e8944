/**
 * Bounded texts for messages and logs. Quoting a text of the other side must not make a message much larger than the
 * text.
 */

/**
 * The largest text about invalid arguments, in UTF-16 units. Validation messages may be many times as long as the
 * arguments.
 */
export const maxProblem = 4096

/** Shortens a text to `max` UTF-16 units. */
export const clip = (text: string, max = 128): string => text.length <= max ? text : `${text.slice(0, max)}…`

/** Shortens a text and puts it in quotes, with unprintable characters escaped. */
export const quoted = (text: string): string => JSON.stringify(clip(text))

/**
 * Shortens a text for a line of the log. A text that contains anything but printable ASCII is put in quotes, because
 * line breaks and control characters could forge a line.
 */
export const logged = (text: string): string => {
  const clipped = clip(text)
  return /^[\x21-\x7e]+…?$/.test(clipped) ? clipped : JSON.stringify(clipped)
}
