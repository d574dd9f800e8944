/**
 * Types that several entries share: durations, schemas of other libraries, and values that may be promises.
 */
import type { JsonObject } from "./messages.ts"

/** A unit of time in a duration. */
type Unit =
  | "milli"
  | "millis"
  | "second"
  | "seconds"
  | "minute"
  | "minutes"
  | "hour"
  | "hours"
  | "day"
  | "days"
  | "week"
  | "weeks"

/** A length of time: a number of milliseconds, or a text such as `"5 seconds"`. */
export type Duration = number | `${number} ${Unit}`

/** A value, or a promise of it. */
export type Awaitable<A> = A | Promise<A>

/**
 * A schema of another library with the interface [Standard Schema](https://standardschema.dev), such as one of Zod,
 * ArkType or Valibot.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1
    readonly vendor: string
    readonly validate: (
      value: unknown,
      options?: { readonly libraryOptions?: { readonly [key: string]: unknown } | undefined } | undefined
    ) => Awaitable<
      | { readonly value: Output; readonly issues?: undefined }
      | { readonly issues: ReadonlyArray<{ readonly message: string }> }
    >
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

/** The values that a schema reads. */
export type InputOf<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["output"]

/** The values that a schema writes. */
export type OutputOf<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["input"]

/** A JSON Schema, as it is sent to clients. */
export type JsonSchema = JsonObject
