/**
 * The header `Retry-After` (RFC 9110, 10.2.3), with which a server requests a delay.
 */

/** Longer delays, which no timer has, count as this one: about 31 years. Each caller has a bound of its own. */
const maxSeconds = 999_999_999

/**
 * The requested delay in milliseconds: a number of seconds, or the time until a date. `undefined` without the header, and
 * for a value that is neither. A date that has passed is a delay of 0.
 *
 * `now` is the present time in milliseconds since 1970. Pass the time of the header `Date` of the response, if there is
 * one: the clocks of the two machines may differ.
 *
 * @example
 * RetryAfter.parse("120", Date.now()) // 120_000
 */
export const parse = (header: string | null | undefined, now: number): number | undefined => {
  if (header === null || header === undefined) return undefined
  const value = header.trim()
  if (/^\d+$/.test(value)) return Math.min(Number(value), maxSeconds) * 1_000
  const date = Date.parse(value)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}
