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
  const firstPages = new Map<Revision, Encoded>()
  let version = registry.version

  const page = (start: number): object => {
    const { sorted } = registry
    const end = start + pageSize
    const last = sorted[end - 1]
    return {
      [key]: sorted.slice(start, end).map(([, { definition }]) => definition),
      ...(last !== undefined && end < sorted.length ? { nextCursor: Cursor.encode(key, last[0], end) } : undefined)
    }
  }

  return (
    cursor: string | undefined,
    revision: Revision,
    finish: (page: object) => Answer
  ): Effect.Effect<Answer, McpError.McpError> =>
    Effect.suspend(() => {
      if (version !== registry.version) {
        firstPages.clear()
        version = registry.version
      }
      if (cursor !== undefined) {
        const position = Cursor.decode(key, cursor)
        if (Result.isFailure(position)) return Effect.fail(position.failure)
        const names = registry.sorted.map(([name]) => name)
        return Effect.succeed(finish(page(Cursor.resume(names, position.success, { sorted: true }))))
      }
      let encoded = firstPages.get(revision)
      if (encoded === undefined) {
        const answer = finish(page(0))
        encoded = answer instanceof Encoded ? answer : new Encoded(JSON.stringify(answer))
        firstPages.set(revision, encoded)
      }
      return Effect.succeed(encoded)
    })
}
