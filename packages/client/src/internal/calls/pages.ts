/**
 * Walking the pages of a listing under a bound.
 */
import { serverErrorOf } from "../errors.ts"
import * as Effect from "effect/Effect"
import { ClientError, InvalidResponse, LimitExceeded } from "../../ClientError.ts"

/** How far to walk. */
export interface Bounds {
  readonly maxPages: number
  readonly maxItems: number
  /** UTF-16 units of JSON. */
  readonly maxSize: number
}

// Pages that are not measured: most listings have no more, and it takes about as long as reading them.
const unmeasured = 8

/** How long a page is as JSON; without end where it is nested deeper than the stack. */
const sizeOf = (page: unknown): number => {
  try {
    return JSON.stringify(page).length
  } catch {
    return Infinity
  }
}

const isUnknownCursor = (error: ClientError): boolean => serverErrorOf(error)?.reason === "InvalidParams"

/**
 * Asks for one page after the other and gathers their items. A missing `nextCursor` is the end, and nothing else is: an
 * empty text is a cursor too (server/utilities/pagination). A cursor that comes a second time would go on for ever. One
 * that the server does not know any more is, once, no failure: the page that it came from may have been kept ("If a
 * cursor becomes invalid, the client SHOULD discard all cached pages and re-fetch from the beginning", 2026-07-28,
 * caching).
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
