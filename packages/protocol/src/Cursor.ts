/**
 * Cursors for lists that are given in pages (pagination, in every revision). To a client a cursor is opaque.
 *
 * A list is in the order of its names, by UTF-16 units as `Array.sort` has it, and a cursor holds the name of the last entry that
 * was given. So it survives whatever happens to the list between two pages: what stays in it is given exactly once. It is
 * neither secret nor signed: whoever changes one gets another place in the same list, so what a client may see must be decided
 * for each page.
 */
import * as Base64Url from "effect/encoding/Base64Url"
import * as Result from "effect/Result"
import * as McpError from "./McpError.ts"

const maxName = 8192
const maxLength = 100_000

const cut = (name: string): string => name.slice(0, maxName)

/**
 * Writes the cursor that stands behind an entry. `list` says which list it is, in a few words: a cursor is refused by every other
 * list. `name` is the entry's name, or its URI. Of a name the first 8,192 UTF-16 units count: where a page ends with one of several
 * that share them, the others are left out.
 */
export const encode = (list: string, name: string): string =>
  // As JSON, which keeps a surrogate without its partner, as UTF-8 would not.
  Base64Url.encode(JSON.stringify([list, cut(name)]))

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const refuse = (): Result.Result<never, McpError.McpError> => Result.fail(McpError.invalidParams("Invalid cursor"))

/**
 * Reads a cursor of this list: the name of the last entry that was given. It never throws: a text that is no cursor, one of
 * another list, and one of more than 100,000 characters, which is more than any has that is written, fail as `InvalidParams`,
 * which is `-32602` in every revision.
 */
export const decode = (list: string, cursor: string): Result.Result<string, McpError.McpError> => {
  if (cursor.length > maxLength || !/^[A-Za-z0-9_-]+$/.test(cursor)) return refuse()
  const text = Base64Url.decodeString(cursor)
  const read = Result.isFailure(text) ? undefined : parse(text.success)
  if (!Array.isArray(read) || read.length !== 2 || read[0] !== list) return refuse()
  const name: unknown = read[1]
  return typeof name === "string" && name.length <= maxName ? Result.succeed(name) : refuse()
}

/**
 * Where the next page begins in the list as it is now; its length where nothing is left. Takes time with the logarithm of the
 * length.
 */
export const resume = <A>(sorted: ReadonlyArray<A>, nameOf: (entry: A) => string, last: string): number => {
  let start = 0
  let end = sorted.length
  while (start < end) {
    const middle = (start + end) >>> 1
    if (cut(nameOf(sorted[middle]!)) > last) end = middle
    else start = middle + 1
  }
  return start
}
