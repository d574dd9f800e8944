/**
 * A cache of results: equal calls of a tool, and reads of a resource, run once for a while.
 *
 * A call is equal if the tool, the arguments (in any order of their members), the revision and the owner are. The owner
 * is the principal; for an anonymous caller its session, or its connection over stdio. Anonymous requests of the
 * stateless revision over HTTP have no owner, and are not cached. With `share` all callers share the results: only for
 * results that depend on nothing but the arguments.
 *
 * - Only results are cached: no `isError`, no JSON-RPC error, no defect, no task. A call for which the handler requested
 *   input of the client is never answered from the cache, and neither is its result stored.
 * - Equal calls that run at the same time run once. They share the result, or the failure, which is not stored. If the
 *   one that runs is cancelled, another one runs. If it requests input of the client, the others run apart from it.
 * - A tool with `uncached` among its `metadata`, a handler that runs `skip`, and a resource with `ttlMs: 0` are not
 *   cached. A resource is cached at most for the `ttlMs` of its result, and until `Catalog.updated` reports a change.
 * - Visibility and guards are checked for every call. Progress and log messages are not repeated.
 * - A handler that depends on anything else (a header, `_meta`, the name of the client) must not be cached.
 *
 * @example
 * const cache = ResultCache.layer({ tools: ["rates"], lifetime: "10 minutes", share: true })
 */
import * as Json from "@skein/protocol/Json"
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import { McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import { monotonicMillis } from "@skein/runtime/RequestRunner"
import * as Defaults from "@skein/runtime/Options"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { Catalog } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import { internals } from "./internal/catalog/catalogState.ts"
import { namesVersion } from "./internal/handlers/toolVersion.ts"
import * as owners from "./internal/state/ownerOf.ts"
import { jsonOf } from "./internal/base/json.ts"
import { OwnedStore } from "./internal/base/ownedStore.ts"
import * as Middleware from "./Middleware.ts"

/** The results that are cached, their lifetime, and the bounds. */
export interface Options {
  /** The tools: by default those with `readOnlyHint` among their annotations. */
  readonly tools?: Middleware.Tools | undefined
  /** The resources, by URI or with a predicate. None by default. */
  readonly resources?: ReadonlyArray<string> | ((read: Middleware.ResourceRead) => boolean) | undefined
  /** How long a result is fresh: 1 minute by default. List the layer twice for different times. */
  readonly lifetime?: Duration.Input | undefined
  /** Whether all callers share the results: `false` by default. */
  readonly share?: boolean | undefined
  /** The number of results: 1,000 by default. At the bound the owner with the most loses its least recently used one. */
  readonly maxEntries?: number | undefined
  /**
   * The size of all results and their keys, in bytes of JSON: 16 MiB by default. At the bound the owner with the most
   * loses its least recently used results. A larger result is not stored.
   */
  readonly maxBytes?: number | undefined
}

class Uncached extends Context.Service<Uncached, true>()("@skein/server/ResultCache/Uncached") {}

/**
 * The `metadata` of a tool that must not be cached.
 *
 * @example
 * const now = Tool.make("now", { annotations: { readOnlyHint: true }, metadata: ResultCache.uncached })
 */
export const uncached: Context.Context<Uncached> = /* @__PURE__ */ Context.make(Uncached, true)

const skipped = new WeakSet<RequestContext>()

/**
 * Keeps the result of the current request out of the cache.
 *
 * @example
 * const partial = Effect.tap(search(query), ({ isComplete }) => isComplete ? Effect.void : ResultCache.skip)
 */
export const skip: Effect.Effect<void, never, McpRequest> = /* @__PURE__ */ Effect.map(McpRequest, ({ original }) => {
  skipped.add(original)
})

/** A result in the cache, as JSON. */
interface Cached {
  readonly target: string
  readonly text: string
}

type Handled<A> = Effect.Effect<A, McpError.McpError, McpRequest>

/** The caches of a server, for `clear`. */
const caches = new WeakMap<object, Set<OwnedStore<Cached>>>()

/**
 * Removes results from all caches of the server: those of one tool or resource, or all.
 *
 * @example
 * const order = Tool.layer(Tool.make("order"), () => Effect.tap(save, () => ResultCache.clear("stock")))
 */
export const clear = (target?: string): Effect.Effect<void, never, Catalog> =>
  Effect.map(Catalog, (catalog) => {
    for (const store of caches.get(catalog[internals]) ?? []) {
      store.removeWhere((cached) => target === undefined || cached.target === target)
    }
  })

const readOnly: Middleware.Tools = ({ definition }) => definition.annotations?.readOnlyHint === true

/**
 * Caches results.
 *
 * @example
 * const cache = ResultCache.layer({ resources: (read) => read.uri.startsWith("docs://"), lifetime: "1 hour" })
 */
export const layer = (options: Options = {}): Layer.Layer<never, DefinitionError, Catalog> =>
  Layer.unwrap(Effect.gen(function*() {
    const catalog = yield* Catalog
    const cache = makeCache(catalog, options)
    yield* cache.attach
    const isCached = typeof options.tools === "function" || options.tools === undefined
      ? options.tools ?? readOnly
      : ({ name }: Middleware.ToolInfo) => (options.tools as ReadonlyArray<string>).includes(name)
    const calls = Middleware.callTool(
      ({ arguments: args, definition, name, request }, next) =>
        cache.run(request, definition, name, args, next, useOf, () => Infinity),
      {
        tools: (tool) =>
          isCached(tool) &&
          tool.metadata?.mapUnsafe.has(Uncached.key) !== true
      }
    )
    const { resources } = options
    return resources === undefined ? calls : Layer.merge(
      calls,
      Middleware.readResource(
        ({ definition, request, uri }, next) =>
          cache.run(request, definition, uri, undefined, next, () => "store", ({ ttlMs }) => ttlMs ?? Infinity),
        { resources }
      )
    )
  }))

/** The use of a result: it is stored, shared with the equal calls that wait for it, or kept from both. */
type Use = "store" | "share" | "keep"

/** The handle of a task belongs to its call. A failure is shared, and not stored. */
const useOf = (result: CallToolResult): Use => {
  const { resultType = "complete", task } = result as CallToolResult & JsonObject
  if (resultType !== "complete" || task !== undefined || !Array.isArray(result.content)) return "keep"
  return result.isError === true ? "share" : "store"
}

/**
 * The continuation of a request that waits for the run of another one: it takes its exit, runs apart from others, or
 * starts again because the other one was cancelled.
 */
type Outcome = Exit.Exit<unknown, McpError.McpError> | "apart" | "again"

/** Runs of effects that equal requests share while they run. */
const makeSharedRuns = () => {
  const all = new Map<string, Deferred.Deferred<Outcome>>()

  /**
   * Runs an effect, or waits for the run with the same key. `isShared` is called with the result; it returns `false` if
   * no other request may have it. `again` is the whole call once more.
   */
  const run = <A>(
    key: string,
    request: RequestContext,
    next: () => Handled<A>,
    isShared: (result: A) => boolean,
    again: () => Handled<A>
  ): Handled<A> =>
    Effect.suspend(() => {
      const running = all.get(key)
      if (running === undefined) return lead(key, request, next, isShared)
      return Effect.flatMap(Deferred.await(running), (outcome): Handled<A> => {
        if (outcome === "again") return again()
        return outcome === "apart" ? next() : outcome as Exit.Exit<A, McpError.McpError>
      })
    })

  const lead = <A>(
    key: string,
    request: RequestContext,
    next: () => Handled<A>,
    isShared: (result: A) => boolean
  ): Handled<A> => {
    const running = Deferred.makeUnsafe<Outcome>()
    const end = (outcome: Outcome) => {
      if (all.get(key) === running) all.delete(key)
      Deferred.doneUnsafe(running, Effect.succeed(outcome))
    }
    all.set(key, running)
    // Its client may take minutes to answer, and the answer is for this request only.
    const { exchange } = request
    const before = exchange.onAsk
    exchange.onAsk = () => {
      before?.()
      end("apart")
    }
    return Effect.onExitPrimitive(Effect.suspend(next), (exit) => {
      if (exchange.hasAsked) end("apart")
      else if (Exit.isSuccess(exit)) end(isShared(exit.value) ? exit : "apart")
      else if (Cause.hasInterruptsOnly(exit.cause)) end("again")
      else end(exit.cause.reasons.some(Cause.isDieReason) ? "apart" : exit)
      return undefined
    })
  }

  return run
}

const makeCache = (catalog: Catalog["Service"], options: Options) => {
  const { lifetime, maxBytes, maxEntries, share } = Defaults.resolve(
    { lifetime: options.lifetime, maxBytes: options.maxBytes, maxEntries: options.maxEntries, share: options.share },
    { maxEntries: 1_000, maxBytes: 16 * 1024 * 1024, share: false },
    { lifetime: "1 minute" }
  )
  const store = new OwnedStore<Cached>({ maxEntries, maxBytes })
  const runShared = makeSharedRuns()
  /** Identifies definitions: a tool that is replaced has other results. */
  const definitions = new WeakMap<object, number>()
  let count = 0
  /** The number of changes of resources that were reported. A read that was running meanwhile is not stored. */
  let changes = 0

  const state = catalog[internals]
  const changed = (uri: string) => {
    changes++
    store.removeWhere(({ target }) => target === uri)
  }

  /** Registers the cache for `clear` and for changes of resources until the scope closes. */
  const attach = Effect.acquireRelease(
    Effect.sync(() => {
      const all = caches.get(state) ?? new Set()
      caches.set(state, all.add(store))
      state.updateListeners.add(changed)
    }),
    () =>
      Effect.sync(() => {
        caches.get(state)?.delete(store)
        state.updateListeners.delete(changed)
      })
  )

  const run = <A extends object>(
    request: RequestContext,
    definition: object,
    target: string,
    args: JsonObject | undefined,
    next: () => Handled<A>,
    useOf: (result: A) => Use,
    ttlOf: (result: A) => number
  ): Handled<A> => {
    const owner = ownerOf(request)
    const key = keyOf(request, definition, args)
    // A round that continues has asked the client. A call that names a version may run another handler.
    if (
      namesVersion(request) || owner === undefined || key === undefined ||
      request.original.params?.["requestState"] !== undefined
    ) {
      return next()
    }
    return Effect.clockWith((clock) => {
      const cached = store.get(owner.key, key, monotonicMillis(clock))
      if (cached !== undefined) return Effect.succeed(Json.parse(cached.text) as A)
      const before = changes
      const keep = (result: A): boolean => {
        const use = skipped.has(request.original) ? "keep" : useOf(result)
        if (use === "store" && before === changes) {
          put(owner, key, target, result, Math.min(lifetime, ttlOf(result)), monotonicMillis(clock))
        }
        return use !== "keep"
      }
      const again = () => run(request, definition, target, args, next, useOf, ttlOf)
      const shared = runShared(`${owner.key.length}:${owner.key}${key}`, request.original, next, keep, again)
      return Effect.andThen(owners.whenGone(store, owner, () => store.removeOwner(owner.key)), shared)
    })
  }

  const ownerOf = (request: RequestContext): owners.Owner | undefined => {
    if (share) return { key: "", scope: undefined }
    const { principal } = request.caller
    if (principal !== undefined) return owners.ofPrincipal(principal.id)
    return owners.ofSession(catalog, request) ?? owners.ofConnection(request)
  }

  const keyOf = ({ caller }: RequestContext, definition: object, args: JsonObject | undefined): string | undefined => {
    const id = definitions.get(definition) ?? ++count
    definitions.set(definition, id)
    try {
      return `${id} ${caller.revision} ${args === undefined ? "" : CanonicalJson.stringify(args)}`
    } catch {
      // Nested too deep. The validation of the arguments refuses them.
      return undefined
    }
  }

  const put = (owner: owners.Owner, key: string, target: string, result: object, ttlMs: number, now: number): void => {
    // A result without JSON is a defect where it is sent.
    const text = jsonOf(result)
    if (text === undefined || !(ttlMs > 0)) return
    const bytes = encoder.encode(text).byteLength + key.length
    store.set(owner.key, key, { value: { target, text }, bytes, expires: now + ttlMs }, now)
  }

  return { attach, run }
}

const encoder = new TextEncoder()
