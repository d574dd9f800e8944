/**
 * Listings: in pages, in the order of names, and written once per change and revision rather than once per call, where every
 * caller sees the same.
 */
import type * as Common from "@skein/protocol/Common"
import * as Cursor from "@skein/protocol/Cursor"
import { Encoded } from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import type * as Method from "@skein/protocol/Method"
import type { Revision } from "@skein/protocol/Revision"
import type { Answer, RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Entry, Registry } from "../../Registry.ts"
import type { MethodTable } from "../methods/methodTable.ts"

type Sorted = ReadonlyArray<readonly [string, Entry<unknown>]>

/** Installs the method that lists a registry, under the member `key` of its result. */
export const installListing = <R>(
  methods: MethodTable,
  method: Method.RequestMethod<Common.PaginatedRequestParams, R>,
  key: keyof R & string,
  registry: Registry<Entry<unknown>>
): void => {
  const { pageSize } = methods.about
  // The pages that stand where a walk through an unchanged list finds them. A cursor may lead elsewhere: that page is not kept,
  // so that what is kept is the list, once per revision.
  const written = new Map<Revision, Array<Encoded>>()
  // The definitions are there already: the first request looks at them.
  let version = -1
  let selective = false
  // "If the first page has cacheScope private, all subsequent pages MUST also be private", also when the entry goes meanwhile.
  let scoped = false

  const refresh = (): void => {
    if (version === registry.version) return
    version = registry.version
    written.clear()
    selective = registry.sorted.some(([, { visible }]) => visible !== undefined)
    scoped ||= selective
  }

  const page = (sorted: Sorted, start: number, exchange: RequestContext): Answer => {
    const end = start + pageSize
    const last = sorted[end - 1]
    const found = {
      [key]: sorted.slice(start, end).map(([, { definition }]) => definition),
      ...(last !== undefined && end < sorted.length ? { nextCursor: Cursor.encode(key, last[0]) } : undefined),
      // Whatever the hint says: what not everybody may see is not to be shared.
      ...(scoped ? { cacheScope: "private" } : undefined)
    }
    return methods.finish(method, found as R, exchange)
  }

  const startOf = (sorted: Sorted, cursor: string | undefined): Result.Result<number, McpError.McpError> => {
    if (cursor === undefined) return Result.succeed(0)
    return Result.map(Cursor.decode(key, cursor), (last) => Cursor.resume(sorted, ([name]) => name, last))
  }

  methods.handle(method, ({ cursor }, exchange) => {
    refresh()
    const sorted = selective
      ? registry.sorted.filter(([, { visible }]) => visible?.(exchange.caller) !== false)
      : registry.sorted
    const start = startOf(sorted, cursor)
    if (Result.isFailure(start)) return Effect.fail(start.failure)
    const number = start.success / pageSize
    if (selective || !Number.isInteger(number)) return Effect.succeed(page(sorted, start.success, exchange))
    const { revision } = exchange.caller
    let pages = written.get(revision)
    if (pages === undefined) written.set(revision, pages = [])
    return Effect.succeed(pages[number] ??= encoded(page(sorted, start.success, exchange)))
  })
}

const encoded = (answer: Answer): Encoded => answer instanceof Encoded ? answer : new Encoded(JSON.stringify(answer))
