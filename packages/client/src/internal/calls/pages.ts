/**
 * Requests the pages of a list within bounds.
 */
import { serverErrorOf } from "../errors.ts"
import * as Effect from "effect/Effect"
import { ClientError, InvalidResponse, LimitExceeded } from "../../ClientError.ts"

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
 * the server does not know a cursor, the list is requested again from the start, once: the page with the cursor may
 * have come from the cache ("If a cursor becomes invalid, the client SHOULD discard all cached pages and re-fetch from
 * the beginning", 2026-07-28, caching).
 */
export const walk = <P extends { readonly nextCursor?: string | undefined }, A>(
  method: string,
  bounds: Bounds,
  page: (cursor: string | undefined) => Effect.Effect<P, ClientError>,
  items: (page: P) => ReadonlyArray<A>
): Effect.Effect<ReadonlyArray<A>, ClientError> =>
  Effect.gen(function*() {
    const all: Array<A> = []
    const seen = new Set<string>()
    let cursor: string | undefined = undefined
    let begunAnew = false
    let size = 0
    for (let pages = 1;; pages++) {
      const asked = page(cursor)
      const next: P | undefined = yield* cursor === undefined || begunAnew
        ? asked
        : Effect.catchIf(asked, isUnknownCursor, () => Effect.succeed(undefined))
      if (next === undefined) {
        begunAnew = true
        all.length = 0
        size = 0
        seen.clear()
        cursor = undefined
        continue
      }
      for (const item of items(next)) all.push(item)
      if (all.length > bounds.maxItems) {
        const message = `${method} gave more than ${bounds.maxItems} items (maxItems)`
        return yield* new ClientError({ reason: new LimitExceeded({ message }), method })
      }
      if (pages > unmeasured) size += sizeOf(next)
      if (size > bounds.maxSize) {
        const message = `${method} gave more than ${bounds.maxSize} characters (maxListingChars)`
        return yield* new ClientError({ reason: new LimitExceeded({ message }), method })
      }
      cursor = next.nextCursor
      if (cursor === undefined) return all
      if (seen.has(cursor)) {
        const message = `${method} gave the cursor of page ${pages} before: its pages would never end`
        return yield* new ClientError({ reason: new InvalidResponse({ message }), method })
      }
      if (pages >= bounds.maxPages) {
        const message = `${method} has more than ${bounds.maxPages} pages (maxPages)`
        return yield* new ClientError({ reason: new LimitExceeded({ message }), method })
      }
      seen.add(cursor)
    }
  })
