/**
 * Options with their defaults: an interface is declared once, with optional members, and one function fills in the rest.
 *
 * Durations become milliseconds (`number`), so that code on a hot path does no conversion. The defaults are in one
 * place, as an object literal.
 *
 * @example
 * interface Policy {
 *   readonly maxInFlightRequests?: number | undefined
 *   readonly timeout?: Duration.Input | undefined
 * }
 * const resolve = (given: Policy): Options.Resolved<Policy> =>
 *   Options.resolve(given, { maxInFlightRequests: 10 }, { timeout: "1 second" })
 */
import * as Duration from "effect/Duration"

/** The names of the members of `O` that are durations. A member whose type is only `number` is a count, not a duration. */
export type DurationKeys<O> = {
  readonly [K in keyof O]-?: Duration.Duration extends Exclude<O[K], undefined> ? K : never
}[keyof O]

/** The options `O` with every member filled in, and durations in milliseconds. */
export type Resolved<O> = {
  readonly [K in keyof O]-?: K extends DurationKeys<O> ? number : Exclude<O[K], undefined>
}

/** The defaults of the members that are not durations. */
export type Defaults<O> = { readonly [K in Exclude<keyof O, DurationKeys<O>>]-?: Exclude<O[K], undefined> }

/** The defaults of the members that are durations. */
export type DurationDefaults<O> = { readonly [K in DurationKeys<O>]: Duration.Input }

/**
 * Fills in the defaults, and converts durations to milliseconds. A member that is `undefined` has its default. A
 * negative number counts as 0.
 */
export const resolve = <O extends object>(
  given: O,
  defaults: Defaults<O>,
  durations: DurationDefaults<O>
): Resolved<O> => {
  const values = given as Readonly<Record<string, unknown>>
  const resolved: Record<string, unknown> = {}
  for (const [name, fallback] of Object.entries(defaults)) {
    const value = values[name] ?? fallback
    resolved[name] = typeof value === "number" ? Math.max(0, value) : value
  }
  for (const [name, value] of Object.entries<Duration.Input>(durations)) {
    resolved[name] = Duration.toMillis(Duration.fromInputUnsafe((values[name] as Duration.Input | undefined) ?? value))
  }
  return resolved as Resolved<O>
}
