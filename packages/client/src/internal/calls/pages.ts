/**
 * Requests the pages of a list within bounds.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import { type ClientError, InvalidResponse, LimitExceeded } from "../../ClientError.ts"
import { clientError, serverErrorOf, within } from "../errors.ts"

/** The bounds of a list. */
export interface Bounds {
  readonly maxPages: number
  readonly maxItems: number
  /** UTF-16 units of JSON. */
  readonly maxSize: number
}

// The first pages are not measured: most lists are not longer, and measuring a page takes about as long as decoding it.
const unmeasured = 8

/** The length of a page as JSON; `Infinity` if it is nested deeper than the stack. */
const sizeOf = (page: unknown): number => {
  try {
    return JSON.stringify(page).length
  } catch {
    return Infinity
  }
}

const isUnknownCursor = (error: ClientError): boolean => serverErrorOf(error)?.reason === "InvalidParams"

/**
 * Requests one page after the other and collects their items. Only a missing `nextCursor` ends the list: an empty
 * string is a cursor too (server/utilities/pagination). A cursor that repeats fails, since the list would not end. If
 * the server rejects a cursor, the list is requested again from the start, once: the page with the cursor may have come
 * from the cache ("If a cursor becomes invalid, the client SHOULD discard all cached pages and re-fetch from the
 * beginning", 2026-07-28, caching).
 */
export const walk = <P extends { readonly nextCursor?: string | undefined }, A>(
  method: string,
  bounds: Bounds,
  page: (cursor: string | undefined) => Effect.Effect<P, ClientError>,
  items: (page: P) => ReadonlyArray<A>
): Effect.Effect<ReadonlyArray<A>, ClientError> =>
  Effect.gen(function*() {
    const tooMany = (what: string) => clientError(LimitExceeded, `${method} ${what}`, method)
    const all: Array<A> = []
    const seen = new Set<string>()
    let cursor: string | undefined = undefined
    let isRestarted = false
    let size = 0
    for (let pages = 1;; pages++) {
      const request = page(cursor)
      const next: P | undefined = yield* cursor === undefined || isRestarted
        ? request
        : Effect.catchIf(request, isUnknownCursor, () => Effect.succeed(undefined))
      if (next === undefined) {
        isRestarted = true
        all.length = 0
        size = 0
        seen.clear()
        cursor = undefined
        continue
      }
      for (const item of items(next)) all.push(item)
      if (all.length > bounds.maxItems) {
        return yield* tooMany(`returned more than ${bounds.maxItems} items (maxItems)`)
      }
      if (pages > unmeasured) size += sizeOf(next)
      if (size > bounds.maxSize) {
        return yield* tooMany(`returned more than ${bounds.maxSize} characters (maxListingChars)`)
      }
      cursor = next.nextCursor
      if (cursor === undefined) return all
      if (seen.has(cursor)) {
        const message = `${method} returned the cursor of page ${pages} before, so the list would not end`
        return yield* clientError(InvalidResponse, message, method)
      }
      if (pages >= bounds.maxPages) {
        return yield* tooMany(`has more than ${bounds.maxPages} pages (maxPages)`)
      }
      seen.add(cursor)
    }
  })

/**
 * The list of one of several servers, or the error of listing it. It is empty if the server does not declare the
 * capability. A list that takes longer than `timeout` fails with `Timeout` and the message.
 */
export const listResult = <A>(
  list: Effect.Effect<ReadonlyArray<A>, ClientError>,
  timeout: Duration.Input,
  message: string
): Effect.Effect<Result.Result<ReadonlyArray<A>, ClientError>> =>
  Effect.result(within(
    Effect.catchReason(list, "ClientError", "Unsupported", () => Effect.succeed<ReadonlyArray<A>>([])),
    timeout,
    message
  ))
