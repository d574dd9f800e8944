/**
 * Listings: in pages, in the order of names, and written once per change and revision rather than once per call.
 */
import * as Cursor from "@skein/protocol/Cursor"
import { Encoded } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type { Revision } from "@skein/protocol/Revision"
import type { Answer } from "@skein/runtime/Exchange"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Registry } from "../Catalog.ts"

/** Gives one page of a registry, under the member `key` of the result. `finish` makes a result out of a page. */
export const make = (registry: Registry<{ readonly definition: unknown }>, key: string, pageSize: number) => {
  const firstPages = new Map<Revision, Encoded>()
  let version = registry.version

  const page = (after: string | undefined): object => {
    const { sorted } = registry
    const start = after === undefined ? 0 : sorted.findIndex(([name]) => name > after)
    const entries = start < 0 ? [] : sorted.slice(start, start + pageSize)
    const last = entries.at(-1)
    const more = last !== undefined && last !== sorted.at(-1)
    return {
      [key]: entries.map(([, { definition }]) => definition),
      ...(more ? { nextCursor: Cursor.encode(last[0]) } : undefined)
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
        const after = Cursor.decode(cursor)
        return Result.isFailure(after)
          ? Effect.fail(McpError.invalidParams("Invalid cursor"))
          : Effect.succeed(finish(page(after.success)))
      }
      let encoded = firstPages.get(revision)
      if (encoded === undefined) {
        const answer = finish(page(undefined))
        encoded = answer instanceof Encoded ? answer : new Encoded(JSON.stringify(answer))
        firstPages.set(revision, encoded)
      }
      return Effect.succeed(encoded)
    })
}
