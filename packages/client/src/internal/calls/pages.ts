/**
 * Requests the pages of a list within bounds.
 */
import * as Nesting from "@skein/protocol/Nesting"
import * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import { type ClientError, LimitExceeded, Timeout } from "../../ClientError.ts"
import { clientError, serverErrorOf } from "../base/errors.ts"
import { FixedBounds } from "../base/fixedBounds.ts"
import { limitOf } from "../connection/clientOptions.ts"
import type { ClientContext } from "./context.ts"

// The first pages are not measured: most lists are not longer, and measuring a page takes about as long as decoding it.
const unmeasured = 8

/** The length of a page as JSON; `Infinity` if it is nested deeper than the stack. */
const sizeOf = Nesting.refusing((page: unknown) => JSON.stringify(page).length, () => Infinity)

const isUnknownCursor = (error: ClientError): boolean => serverErrorOf(error)?.reason === "InvalidParams"

/** The identity of a listed item: its URI, its template or its name. */
const keyOf = (item: unknown): unknown => {
  const { name, uri, uriTemplate } = item as { readonly [key: string]: unknown }
  return uri ?? uriTemplate ?? name
}

/** The part of a client that lists. */
type ListingClient = Pick<ClientContext, "bounds" | "options" | "supervisor" | "warnOnce">

/**
 * Requests one page after the other and collects their items. A missing `nextCursor` ends the list. If the server
 * rejects a cursor, the list is requested again from the start, once: the page with the cursor may have come from the
 * cache ("If a cursor becomes invalid, the client SHOULD discard all cached pages and re-fetch from the beginning",
 * 2026-07-28, caching).
 *
 * A list without an end ends too, with a warning: a cursor that repeats, since some servers ignore it and send the same
 * page again, and an empty one, with which some servers end their lists. 2026-07-28 has empty cursors ("an empty string
 * is a valid cursor and thus MUST NOT be treated as the end of results"): there it is requested once.
 */
export const walk = Effect.fnUntraced(function*<P extends { readonly nextCursor?: string | undefined }, A>(
  method: string,
  client: ListingClient,
  page: (cursor: string | undefined) => Effect.Effect<P, ClientError>,
  items: (page: P) => ReadonlyArray<A>
): Effect.fn.Return<ReadonlyArray<A>, ClientError> {
  const { maxListingChars, maxPages } = client.bounds
  const maxItems = limitOf(client.options, "maxItems")
  const endAt = (what: string): void =>
    client.warnOnce(`${method} cursor`, `${method} returned ${what}. The list ends there.`)
  const tooMany = (what: string) => clientError(LimitExceeded, `${method} ${what}`, method)
  const all: Array<A> = []
  const seen = new Set<string>()
  let cursor: string | undefined = undefined
  let isRestarted = false
  let size = 0
  for (let pages = 1;; pages++) {
    const request = page(cursor)
    const next: P | undefined = yield* cursor === undefined || (isRestarted && cursor !== "")
      ? request
      : Effect.catchIf(request, isUnknownCursor, () => Effect.succeed(undefined))
    if (next === undefined) {
      if (cursor === "") {
        endAt("an empty cursor that it does not accept")
        return all
      }
      isRestarted = true
      all.length = 0
      size = 0
      seen.clear()
      cursor = undefined
      continue
    }
    const before = all.length
    for (const item of items(next)) all.push(item)
    if (all.length > maxItems) {
      return yield* tooMany(`returned more than ${maxItems} items (maxItems)`)
    }
    if (pages > unmeasured) size += sizeOf(next)
    if (size > maxListingChars) {
      return yield* tooMany(`returned more than ${maxListingChars} characters`)
    }
    cursor = next.nextCursor
    if (cursor === undefined) return all
    if (seen.has(cursor)) {
      endAt(`the same cursor twice, the second time with page ${pages}`)
      const known = new Set(all.slice(0, before).map(keyOf))
      return all.filter((item, index) => index < before || !known.has(keyOf(item)))
    }
    if (cursor === "" && !client.supervisor.last.isStateless) {
      endAt("an empty cursor")
      return all
    }
    if (pages >= maxPages) {
      return yield* tooMany(`has more than ${maxPages} pages`)
    }
    seen.add(cursor)
  }
})

/**
 * The list of one of several servers, or the error of listing it. It is empty if the server does not declare the
 * capability. A list that takes longer than `listTimeout` fails with `Timeout` and the message.
 */
export const listResult = <A>(
  list: Effect.Effect<ReadonlyArray<A>, ClientError>,
  message: string
): Effect.Effect<Result.Result<ReadonlyArray<A>, ClientError>> =>
  Effect.flatMap(
    FixedBounds,
    ({ listTimeout }) =>
      Effect.catchReason(list, "ClientError", "Unsupported", () => Effect.succeed<ReadonlyArray<A>>([])).pipe(
        Effect.timeoutOrElse({
          duration: listTimeout,
          orElse: () => Effect.fail(clientError(Timeout, `${message} within ${listTimeout / 1_000} seconds`))
        }),
        Effect.result
      )
  )
