/**
 * Listings: in pages, in the order of names, and written once per change and revision rather than once per call.
 */
import * as Cursor from "@skein/protocol/Cursor"
import { Encoded } from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import type { Revision } from "@skein/protocol/Revision"
import type { Answer } from "@skein/runtime/Exchange"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Registry } from "../Catalog.ts"

/** Gives one page of a registry, under the member `key` of the result. `finish` makes a result out of a page. */
export const make = (registry: Registry<{ readonly definition: unknown }>, key: string, pageSize: number) => {
  // The pages that stand where a walk through an unchanged list finds them. A cursor may lead elsewhere: that page is not kept,
  // so that what is kept is the list, once per revision.
  const written = new Map<Revision, Array<Encoded>>()
  let version = registry.version

  const page = (start: number): object => {
    const { sorted } = registry
    const end = start + pageSize
    const last = sorted[end - 1]
    return {
      [key]: sorted.slice(start, end).map(([, { definition }]) => definition),
      ...(last !== undefined && end < sorted.length ? { nextCursor: Cursor.encode(key, last[0]) } : undefined)
    }
  }

  const startOf = (cursor: string | undefined): Result.Result<number, McpError.McpError> => {
    if (cursor === undefined) return Result.succeed(0)
    return Result.map(Cursor.decode(key, cursor), (last) => Cursor.resume(registry.sorted, ([name]) => name, last))
  }

  return (
    cursor: string | undefined,
    revision: Revision,
    finish: (page: object) => Answer
  ): Effect.Effect<Answer, McpError.McpError> =>
    Effect.suspend(() => {
      if (version !== registry.version) {
        written.clear()
        version = registry.version
      }
      const start = startOf(cursor)
      if (Result.isFailure(start)) return Effect.fail(start.failure)
      const number = start.success / pageSize
      if (!Number.isInteger(number)) return Effect.succeed(finish(page(start.success)))
      let pages = written.get(revision)
      if (pages === undefined) written.set(revision, pages = [])
      return Effect.succeed(pages[number] ??= encoded(finish(page(start.success))))
    })
}

const encoded = (answer: Answer): Encoded => answer instanceof Encoded ? answer : new Encoded(JSON.stringify(answer))
