/**
 * Cursors for lists that are given in pages (pagination, in every revision). To a client a cursor is opaque.
 *
 * A cursor says how many entries came before it and which was the last of them, so that it survives what happens to the list
 * between two pages; see {@link resume}. It is neither secret nor signed: whoever changes one gets another place in the same list,
 * so what a client may see must be decided for each page.
 */
import * as Base64Url from "effect/encoding/Base64Url"
import * as Result from "effect/Result"
import * as McpError from "./McpError.ts"

/** A place in a list, as it is read from a cursor. */
export interface Position {
  /** How many entries came before. */
  readonly index: number
  /** The name of the last of them: as much of it as the cursor holds, which is 128 UTF-16 units. */
  readonly name: string
  /** A digest of that whole name. */
  readonly digest: string
}

const maxName = 128

// FNV-1a over UTF-16 units: 32 bits, to tell lists and names apart, not to keep anybody out.
const digest = (text: string): string => {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (hash >>> 0).toString(36)
}

// The name is written as JSON, which keeps a surrogate without its partner, as UTF-8 would not.
const version = "1"

/**
 * Writes the cursor that stands behind an entry. `list` says which list it is, `tools/list` for instance with whatever filters it:
 * a cursor is refused by every other list. `name` is the entry's name, or its URI, and `index` how many entries have been given,
 * this one included. The cursor is at most 1,200 characters long.
 */
export const encode = (list: string, name: string, index: number): string =>
  Base64Url.encode(
    `${version}.${digest(list)}.${index.toString(36)}.${digest(name)}.${JSON.stringify(name.slice(0, maxName))}`
  )

const form = /^1\.([0-9a-z]{1,7})\.([0-9a-z]{1,11})\.([0-9a-z]{1,7})\./

const parseName = (text: string): string | undefined => {
  try {
    const name: unknown = JSON.parse(text)
    return typeof name === "string" && name.length <= maxName ? name : undefined
  } catch {
    return undefined
  }
}

const refuse = (): Result.Result<never, McpError.McpError> => Result.fail(McpError.invalidParams("Invalid cursor"))

/**
 * Reads a cursor of this list. It never throws: a text that is no cursor, one of another list or of another version, and one that
 * is longer than `maxLength` (2,048 characters by default) fail as `InvalidParams`, which is `-32602` in every revision.
 */
export const decode = (
  list: string,
  cursor: string,
  options?: { readonly maxLength?: number | undefined }
): Result.Result<Position, McpError.McpError> => {
  if (cursor.length > (options?.maxLength ?? 2048) || !/^[A-Za-z0-9_-]+$/.test(cursor)) return refuse()
  const text = Base64Url.decodeString(cursor)
  if (Result.isFailure(text)) return refuse()
  const read = form.exec(text.success)
  if (read === null || read[1] !== digest(list)) return refuse()
  const index = Number.parseInt(read[2]!, 36)
  const name = parseName(text.success.slice(read[0].length))
  if (index < 1 || !Number.isSafeInteger(index) || name === undefined) return refuse()
  return Result.succeed({ index, name, digest: read[3]! })
}

/**
 * Where the next page begins in the list as it is now, given its names in order; the length of the list where nothing is left.
 *
 * - The last entry that was given is where it was, or has moved because others came or went: behind it. Nothing is given twice
 *   or left out, but for what changed in front of it.
 * - It is gone, and the list is `sorted` (by UTF-16 units, as `Array.sort` does): where it would stand. (Of names that
 *   share their first 128 units with it, some may be given twice.)
 * - It is gone, and the list is not sorted: at its old index, where its successor is now. Where more entries went, some
 *   are left out; where entries came in front, some are given twice.
 *
 * Time is constant for a list that did not change, and linear otherwise.
 */
export const resume = (
  names: ReadonlyArray<string>,
  position: Position,
  options?: { readonly sorted?: boolean | undefined }
): number => {
  const isLast = (name: string | undefined): boolean =>
    name !== undefined && digest(name) === position.digest && name.slice(0, maxName) === position.name
  if (isLast(names[position.index - 1])) return position.index
  const moved = names.findIndex(isLast)
  if (moved >= 0) return moved + 1
  if (options?.sorted !== true) return Math.min(position.index - 1, names.length)
  const next = names.findIndex((name) => name > position.name)
  return next < 0 ? names.length : next
}
