/**
 * Lists: paged, in the order of the definitions, and encoded once per change and revision instead of once per call, if all callers see
 * the same entries.
 */
import * as Json from "@skein/protocol/Json"
import { cut } from "@skein/protocol/Text"
import type { PaginatedRequestParams } from "@skein/protocol/Pagination"
import * as Cursor from "@skein/protocol/Cursor"
import { Encoded } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type * as Method from "@skein/protocol/Method"
import type { Revision } from "@skein/protocol/Revision"
import type { Answer, RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type Handled, internals } from "../catalog/catalogState.ts"
import type { Entry, Registry } from "../../Registry.ts"
import { comparePlaces, type Place } from "../catalog/placement.ts"
import { decoding, type MethodTable } from "./methodTable.ts"
import { isVisible } from "../catalog/entryStore.ts"

type Sorted = ReadonlyArray<readonly [string, Entry<unknown>]>

const isUnlisted = ([, entry]: Sorted[number]): boolean =>
  isTrue((entry as { readonly unlisted?: boolean | (() => boolean) | undefined }).unlisted)

const isTrue = (value: boolean | (() => boolean) | undefined): boolean =>
  typeof value === "function" ? value() : value === true

/** Adds the method that lists a registry to the table. `key` is the member of the result that contains the entries. */
export const installListing = <R>(
  methods: MethodTable,
  method: Method.RequestMethod<PaginatedRequestParams, R>,
  key: keyof R & string,
  registry: Registry<Entry<unknown>>
): void => {
  const { pageSize } = methods.description
  // The encoded pages of a walk through an unchanged list. A cursor may start a page at another entry. Such a page is
  // not cached, so that the cache holds every entry at most once per revision.
  const cached = new Map<Revision, Array<Encoded>>()
  // -1: the first request computes the rest of the state.
  let version = -1
  let selective = false
  let listed: Sorted = []
  // "If the first page has cacheScope private, all subsequent pages MUST also be private", even if the entry that
  // caused it is removed meanwhile.
  let scoped = false

  const refresh = (): void => {
    if (version === registry.version) return
    version = registry.version
    cached.clear()
    listed = registry.sorted.some(isUnlisted) ? registry.sorted.filter((entry) => !isUnlisted(entry)) : registry.sorted
    selective = listed.some(([, { listedAs, visible }]) => visible !== undefined || listedAs !== undefined)
    scoped ||= selective
  }

  const page = (sorted: Sorted, start: number, request: RequestContext): Answer => {
    const end = start + pageSize
    const last = sorted[end - 1]
    const result = {
      [key]: sorted.slice(start, end).map(([, entry]) => listedFor(entry, request)),
      ...(last !== undefined && end < sorted.length
        ? { nextCursor: Cursor.encode(key, writePosition(registry.placeOf(last[0]), last[0])) }
        : undefined),
      // Takes precedence over caching hints: a list with entries that only some callers may see must not be shared.
      ...(scoped ? { cacheScope: "private" } : undefined)
    }
    return methods.encodeResult(method, result as R, request)
  }

  const startOf = (sorted: Sorted, cursor: string | undefined): Result.Result<number, McpError.McpError> => {
    if (cursor === undefined) return Result.succeed(0)
    return Result.flatMap(Cursor.decode(key, cursor), (position) => {
      const place = readPlace(position)
      if (place === undefined) return Result.fail(McpError.invalidParams("Invalid cursor"))
      return Result.succeed(resume(sorted, registry, place, position))
    })
  }

  const hooks = methods.catalog[internals].operations.lists[method.name]!

  /** A list that middleware may change for its caller. It changes the whole list, so that pages stay full. */
  const listThroughHooks = (cursor: string | undefined, request: RequestContext): Handled<Answer> => {
    scoped = true
    const seen = listed.filter(([, entry]) => isVisible(entry, request.caller))
    const definitions: ReadonlyArray<unknown> = seen.map(([, entry]) => listedFor(entry, request))
    return Effect.flatMap(
      hooks.run({ caller: request.caller, request }, () => Effect.succeed(definitions)),
      (changed) => {
        const sorted = changed === definitions ? seen : sortedAgain(changed, registry)
        const start = startOf(sorted, cursor)
        return Result.isFailure(start)
          ? Effect.fail(start.failure)
          : Effect.succeed(page(sorted, start.success, request))
      }
    )
  }

  const list = decoding(method, ({ cursor }, request) => {
    refresh()
    if (hooks.all.length > 0) return listThroughHooks(cursor, request)
    const sorted = selective
      ? listed.filter(([, entry]) => isVisible(entry, request.caller))
      : listed
    const start = startOf(sorted, cursor)
    if (Result.isFailure(start)) return Effect.fail(start.failure)
    const number = start.success / pageSize
    if (selective || !Number.isInteger(number)) return Effect.succeed(page(sorted, start.success, request))
    const { revision } = request.caller
    let pages = cached.get(revision)
    if (pages === undefined) cached.set(revision, pages = [])
    return Effect.succeed(pages[number] ??= encoded(page(sorted, start.success, request)))
  })
  methods.set(method as Method.AnyRequest, list)
}

const listedFor = ({ definition, listedAs }: Entry<unknown>, { caller }: RequestContext): unknown =>
  listedAs === undefined ? definition : listedAs(definition, caller)

/** Sorts definitions that middleware has returned: those of the registry by their places, and then the others by name. */
const sortedAgain = (definitions: ReadonlyArray<unknown>, registry: Registry<Entry<unknown>>): Sorted => {
  const named = definitions.map((definition) => {
    const { name, uri, uriTemplate } = definition as { readonly [member: string]: string }
    return [uri ?? uriTemplate ?? name!, { definition }] as const
  })
  return named.sort(([a], [b]) =>
    comparePlaces(registry.placeOf(a), registry.placeOf(b)) || (a < b ? -1 : a > b ? 1 : 0)
  )
}

const encoded = (answer: Answer): Encoded => answer instanceof Encoded ? answer : new Encoded(Json.stringify(answer)!)

// The characters of a text that a cursor contains. The name is at the end, so that it is the part that is cut.
const maxCursorChars = 8192

/** Writes the position of an entry. The entry itself may be removed before the next page is requested. */
const writePosition = (place: Place, name: string): string => cut(`${place.join(".")} ${name}`, maxCursorChars)

/** Returns the place in the text of a position. */
const readPlace = (position: string): Place | undefined => {
  const match = /^(?:(\d{1,16}(?:\.\d{1,16})*))? /.exec(position)
  return match === null ? undefined : match[1]?.split(".").map(Number) ?? []
}

/** Returns the index of the first entry after a position. Takes time logarithmic in the length of the list. */
const resume = (sorted: Sorted, registry: Registry<Entry<unknown>>, place: Place, position: string): number => {
  let start = 0
  let end = sorted.length
  while (start < end) {
    const middle = (start + end) >>> 1
    const name = sorted[middle]![0]
    const order = comparePlaces(registry.placeOf(name), place)
    if (order > 0 || (order === 0 && writePosition(place, name) > position)) end = middle
    else start = middle + 1
  }
  return start
}
