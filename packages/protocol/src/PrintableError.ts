/**
 * Tagged errors whose messages may quote the other side: its errors, its HTTP responses, the stderr of its process.
 */
import * as Data from "effect/Data"
import { printableLines } from "./Text.ts"

type TaggedError<Tag extends string> = ReturnType<typeof Data.TaggedError<Tag>>

/**
 * Makes the base of an error class, as `Data.TaggedError` does. The constructor escapes the unprintable characters of
 * the message, except for tabs and line breaks: the message is written to logs and terminals, and a quotation in it
 * must not control them. The other members stay as they are.
 *
 * @example
 * class Closed extends PrintableError.tagged("Closed")<{ readonly message: string }> {}
 */
export const tagged = <Tag extends string>(tag: Tag): TaggedError<Tag> => {
  const Base = Data.TaggedError(tag)<{ readonly message: string }>
  return class extends Base {
    constructor(fields: { readonly message: string }) {
      super({ ...fields, message: printableLines(fields.message, Infinity) } as never)
    }
  } as never
}
