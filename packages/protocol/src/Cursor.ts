/**
 * Cursors of a server for lists in pages (server/utilities/pagination, in every revision). For a client a cursor is
 * opaque.
 *
 * A list is sorted by a text (UTF-16 units, as `Array.sort`), such as the names of its entries. A cursor contains the text
 * of the last entry of a page. A list with another order can encode a text that describes the position of the entry.
 * The list may change between two pages: entries that stay in it are returned exactly once.
 *
 * A cursor is neither secret nor signed. A client that changes one gets another position in the same list, so check on
 * every page which entries the client may see.
 *
 * @example
 * const last = Result.getOrThrow(Cursor.decode("tools", cursor))
 * const start = Cursor.resume(tools, ({ name }) => name, last)
 * const page = tools.slice(start, start + 100)
 * const nextCursor = Cursor.encode("tools", page.at(-1)!.name)
 */
import * as Base64Url from "effect/encoding/Base64Url"
import * as Result from "effect/Result"
import * as McpError from "./McpError.ts"
import * as Text from "./Text.ts"

const maxName = 8192
const maxLength = 100_000

const shorten = (name: string): string => Text.cut(name, maxName)

/**
 * Makes the cursor of the position after an entry. `list` is a short name of the list; {@link decode} refuses the
 * cursor for any other list. `name` is the entry's name or URI.
 *
 * Only the first 8,192 UTF-16 units of a name count. Where a page ends with one of several entries that share them, the
 * others are skipped.
 */
export const encode = (list: string, name: string): string =>
  // JSON escapes a surrogate without a partner, which UTF-8 cannot encode.
  Base64Url.encode(JSON.stringify([list, shorten(name)]))

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const refuse = (): Result.Result<never, McpError.McpError> => Result.fail(McpError.invalidParams("Invalid cursor"))

/**
 * Reads a cursor of the list `list` and returns the name of the last entry of the previous page. It does not throw.
 *
 * Fails with `InvalidParams` (`-32602` in every revision) for a text that is not a cursor, for a cursor of another
 * list, and for more than 100,000 characters. {@link encode} never writes that many.
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
 * Returns the index of the first entry after `last` in a sorted list, or the length of the list if there is none. The
 * entry `last` itself may have been removed. Takes time logarithmic in the length.
 */
export const resume = <A>(sorted: ReadonlyArray<A>, nameOf: (entry: A) => string, last: string): number => {
  let start = 0
  let end = sorted.length
  while (start < end) {
    const middle = (start + end) >>> 1
    if (shorten(nameOf(sorted[middle]!)) > last) end = middle
    else start = middle + 1
  }
  return start
}
