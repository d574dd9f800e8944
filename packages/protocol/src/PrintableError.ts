/**
 * Tagged errors whose messages may quote the other side: its errors, its HTTP responses, the stderr of its process.
 */
import type { YieldableError } from "effect/Cause"
import * as Data from "effect/Data"
import { printableLines } from "./Text.ts"

/** The base of an error class with the members `A`, besides the `message` that every error has. */
type PrintableError<Tag extends string> = new<A extends object = object>(
  fields: Omit<A, "_tag" | "message"> & { readonly message: string }
) => YieldableError & Readonly<A> & { readonly _tag: Tag; readonly message: string }

/** The base of an error class with the members `A`, one of which is its reason. */
type ReasonedError<Tag extends string> = new<A extends { readonly reason: { readonly message: string } }>(
  fields: Omit<A, "_tag" | "message">
) => YieldableError & Readonly<A> & { readonly _tag: Tag; readonly message: string }

/**
 * Makes the base of an error class, as `Data.TaggedError` does. The constructor escapes the unprintable characters of
 * the message, except for tabs and line breaks: the message is written to logs and terminals, and a quotation in it
 * must not control them. The other members, which the type parameter declares, stay as they are.
 *
 * @example
 * class Refused extends PrintableError.tagged("Refused")<{ readonly status: number }> {}
 * new Refused({ message: "The server refused the request", status: 403 })
 */
export const tagged = <Tag extends string>(tag: Tag): PrintableError<Tag> => {
  const Base = Data.TaggedError(tag)<{ readonly message: string }>
  return class extends Base {
    /** `console.error` prints the error with its stack, and not the object with its members, as other errors of Effect. */
    get [Symbol.for("nodejs.util.inspect.custom")](): undefined {
      return undefined
    }

    constructor(fields: { readonly message: string }) {
      super({ ...fields, message: printableLines(fields.message, Infinity) } as never)
      // Node prints the name of the class, which a bundler may have changed, for example to `ClientError$1`.
      if (new.target.name.startsWith(`${tag}$`)) Object.defineProperty(new.target, "name", { value: tag })
    }
  } as never
}

/**
 * Makes the base of an error class with a `reason`, itself a tagged error, so that `Effect.catchReason` selects one. The
 * message of the error is that of its reason.
 *
 * @example
 * class ShopError extends PrintableError.withReason("ShopError")<{ readonly reason: Refused | Closed }> {}
 * new ShopError({ reason: new Refused({ message: "The server refused the request", status: 403 }) })
 */
export const withReason = <Tag extends string>(tag: Tag): ReasonedError<Tag> => {
  const Base = tagged(tag)<{ readonly reason: { readonly message: string } }>
  return class extends Base {
    constructor(fields: { readonly reason: { readonly message: string } }) {
      super({ ...fields, message: fields.reason.message })
    }
  } as never
}
