/**
 * The response cache of the calls (2026-07-28, caching).
 */
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import * as Codec from "@skein/protocol/Codec"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as MetaKey from "@skein/protocol/MetaKey"
import * as Json from "@skein/protocol/Json"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import * as Options from "@skein/runtime/Options"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { ClientError } from "../../../ClientError.ts"
import * as ResponseCache from "../../../ResponseCache.ts"
import { CacheStore } from "./store.ts"
import { FixedBounds } from "../../base/fixedBounds.ts"
import { withSafeIcons } from "../../base/icons.ts"

/** A result, and whether it may be stored: a result that required input may not. */
export interface Got<R> {
  readonly result: R
  readonly keep: boolean
}

/** Stores and serves responses. */
export interface Cached {
  /**
   * Returns the fresh stored response, unless the mode is `refresh`. Otherwise runs `get`, and stores the result if
   * that is allowed. The result passes through `read`, which may record or omit a part.
   */
  readonly through: <P, R>(
    method: Method.RequestMethod<P, R>,
    params: P,
    mode: "use" | "refresh",
    get: Effect.Effect<Got<R>, ClientError>,
    read: (result: R) => R
  ) => Effect.Effect<R, ClientError>
  /** Invalidates the responses that a notification of the server concerns. */
  readonly notice: (notification: { readonly method: string; readonly params?: JsonObject | undefined }) => void
  /** Invalidates all responses of the server. */
  readonly forget: () => void
}

/** The cache that stores nothing. */
const disabled: Cached = {
  through: (_method, _params, _mode, get, read) => Effect.map(get, ({ result }) => read(result)),
  notice: () => {},
  forget: () => {}
}

/** The members of `_meta` that may affect the result. The protocol's own keys, such as a trace, do not. */
const foreign = (meta: unknown): JsonObject | undefined => {
  if (!isObject(meta)) return undefined
  const keys = Object.keys(meta).filter((key) => !MetaKey.isReserved(key))
  return keys.length === 0 ? undefined : Object.fromEntries(keys.map((key) => [key, meta[key]]))
}

/**
 * The relevant params as text: "Clients MUST NOT serve a cached response for a request whose method or parameters
 * differ from the request that produced it". `undefined` if the result may neither be stored nor be returned from the
 * store: "Results produced by requests carrying `inputResponses` or `requestState` MUST NOT be cached".
 */
const paramsOf = (params: unknown): string | undefined => {
  if (!isObject(params)) return "{}"
  if (params["inputResponses"] !== undefined || params["requestState"] !== undefined) return undefined
  return CanonicalJson.stringify({ ...params, _meta: foreign(params["_meta"]) })
}

// A legitimate URI has fewer parts than this.
const maxReads = 64

/**
 * The params of the reads that a change of a resource invalidates: reads of the resource, and of each resource that may
 * contain it.
 */
const readsOf = (uri: string): ReadonlyArray<string> => {
  const uris = [uri]
  // "This might be a sub-resource of the one that the client actually subscribed to."
  for (let at = uri.lastIndexOf("/"); at > 0 && uris.length < maxReads; at = uri.lastIndexOf("/", at - 1)) {
    uris.push(uri.slice(0, at + 1), uri.slice(0, at))
  }
  return uris.map((uri) => CanonicalJson.stringify({ uri }))
}

/** The responses of a method, or those with some params. */
type Target = readonly [method: string, params?: ReadonlyArray<string>]

const tools: ReadonlyArray<Target> = [[Method.ListTools.name]]
const prompts: ReadonlyArray<Target> = [[Method.ListPrompts.name]]
// Templates and skills have no notification of their own. The files of skills are resources. The methods of skills are
// those of `@skein/skills`, by name, since another client may have stored their results in a shared store.
const skills: ReadonlyArray<Target> = [["skills/list"], ["skills/get"]]
const resources: ReadonlyArray<Target> = [
  [Method.ListResources.name],
  [Method.ListResourceTemplates.name],
  ...skills
]
// Beyond these bounds all responses of `resources/read` are invalidated, since it costs less to request them again than
// to look up each one.
const maxUri = 8_192
const maxUris = 64
const allReads: Target = [Method.ReadResource.name]
const reads = (uri: unknown): ReadonlyArray<Target> =>
  typeof uri !== "string" ? [] : [uri.length > maxUri ? allReads : [Method.ReadResource.name, readsOf(uri)]]

/**
 * The responses that a subscription covers once it is acknowledged. They are invalidated, because the server has not
 * reported changes before the acknowledgment: a client that subscribes and then reads must get the present data.
 */
const covered = (notifications: unknown): ReadonlyArray<Target> => {
  if (!isObject(notifications)) return []
  const uris = notifications["resourceSubscriptions"]
  return [
    ...(notifications["toolsListChanged"] === true ? tools : []),
    ...(notifications["promptsListChanged"] === true ? prompts : []),
    ...(notifications["resourcesListChanged"] === true ? resources : []),
    ...(!Array.isArray(uris) ? [] : uris.length > maxUris ? [allReads] : uris.flatMap(reads))
  ]
}

/** The responses that a notification invalidates. "The notification invalidates the cached response." */
const staleBy = new Map<string, (params: JsonObject | undefined) => ReadonlyArray<Target>>([
  [Method.ToolListChanged.name, () => tools],
  [Method.PromptListChanged.name, () => prompts],
  [Method.ResourceListChanged.name, () => resources],
  [Method.ResourceUpdated.name, (params) => [...reads(params?.["uri"]), ...skills]],
  [Method.SubscriptionsAcknowledged.name, (params) => covered(params?.["notifications"])]
])

/** Whether the server did not respond: "network issues, server downtime". A status below 500 is a response. */
const isOutage = ({ reason }: ClientError): boolean =>
  reason._tag === "HttpError"
    ? (reason.status ?? 500) >= 500
    : reason._tag === "ConnectionFailed" || reason._tag === "Closed" || reason._tag === "Timeout"

/** The caching hints of a result. In the newest revision all results of these methods have them. */
interface Hints {
  readonly ttlMs?: number | undefined
  readonly cacheScope?: "public" | "private" | undefined
}

const ttlOf = ({ ttlMs = 0 }: Hints): number => Number.isFinite(ttlMs) ? ttlMs : 0

/**
 * A result as JSON text. `undefined` for a result that is nested too deeply for the stack: it can be parsed but not
 * written.
 */
const textOf = (result: unknown): string | undefined => Result.getOrUndefined(Result.try(() => Json.stringify(result)))

/** Decodes a stored result. It is validated like a received one, since the store is not trusted. */
const decode = <P, R>(method: Method.RequestMethod<P, R>, text: string): R | undefined => {
  const decoder = method as Method.RequestMethod<unknown, R>
  const read = Result.try(() => Codec.decodeResult(decoder, Revision.latest, Json.parse(text) as JsonObject))
  return Result.getOrUndefined(Result.flatMap(read, (decoded) => decoded))
}

type Durations = Pick<ResponseCache.Options, "maxTtl" | "staleIfError">

/** Makes the response cache. Invalidations run in the scope. */
export const make = (
  options: ResponseCache.Options | false = {},
  context: Context.Context<never>,
  scope: Scope.Scope
): Cached => {
  if (options === false) return disabled
  const { maxTtl, staleIfError } = Options.resolve<Durations>(options, {}, { maxTtl: "24 hours", staleIfError: 0 })
  const { storeTimeout } = Context.get(context, FixedBounds)
  const store = new CacheStore({
    ...(options.store === undefined
      ? { store: ResponseCache.make(options), server: "", partition: "", timeout: undefined }
      : { store: options.store, server: options.server, partition: options.partition, timeout: storeTimeout }),
    clock: Context.get(context, Clock.Clock),
    fork: (effect) => void Effect.runForkWith(context)(Effect.forkIn(effect, scope, { startImmediately: true }))
  })

  // The texts of entries that were decoded before and of which `read` left nothing out. They are not validated again.
  const known = new WeakMap<ResponseCache.Entry, string>()
  const resultOf = <P, R>(method: Method.RequestMethod<P, R>, entry: ResponseCache.Entry, read: (result: R) => R) => {
    const { text } = entry
    if (known.get(entry) === text) return Json.parse(text) as R
    const result = decode(method, text)
    if (result === undefined) return undefined
    const given = read(withSafeIcons(method.name, result))
    if (given === result) known.set(entry, text)
    return given
  }

  const through: Cached["through"] = (method, params, mode, get, read) => {
    const { name } = method
    const key = paramsOf(params)
    if (key === undefined) return Effect.map(get, ({ result }) => read(result))

    const keep = (result: Hints, changes: number): Effect.Effect<void> => {
      const ttlMs = ttlOf(result)
      const text = ttlMs > 0 ? textOf(result) : undefined
      if (text !== undefined) {
        const entry = { text, receivedAt: store.now, ttlMs }
        return store.set(name, key, entry, result.cacheScope === "public", changes)
      }
      // The stored response is older than the new one, which must not be stored.
      if (mode === "refresh") store.stale(name, [key])
      return Effect.void
    }
    const failed = ({ reason }: ClientError): void => {
      if (reason._tag !== "ProtocolError") return
      // "If a cursor becomes invalid, the client SHOULD discard all cached pages."
      const isCursor = (params as { readonly cursor?: unknown }).cursor !== undefined
      if (reason.error.reason === "InvalidParams") store.stale(name, isCursor ? undefined : [key])
      if (reason.error.reason === "ResourceNotFound") store.stale(name, [key])
    }
    const fetch = Effect.suspend(() => {
      const changes = store.changes(name)
      return get.pipe(
        Effect.tapError((error) => Effect.sync(() => failed(error))),
        Effect.flatMap(({ keep: mayKeep, result }) => {
          const given = read(result)
          return mayKeep ? Effect.as(keep(result as Hints, changes), given) : Effect.succeed(given)
        })
      )
    })
    if (mode === "refresh") return fetch

    const changes = store.changes(name)
    return Effect.flatMap(store.get(name, key), (entry) => {
      if (entry === undefined || store.changes(name) !== changes) return fetch
      const age = store.now - entry.receivedAt
      const ttl = Math.min(entry.ttlMs, maxTtl)
      // An entry from the future was written by another clock, so its age is not known.
      if (age < 0 || age >= ttl + staleIfError) return fetch
      const result = resultOf(method, entry, read)
      if (result === undefined) return fetch
      if (age < ttl) return Effect.succeed(result)
      return Effect.catchIf(fetch, isOutage, (error) =>
        // The response may have been invalidated in the meantime.
        store.changes(name) === changes ? Effect.succeed(result) : Effect.fail(error))
    })
  }

  return {
    through: (method, params, mode, get, read) => Effect.suspend(() => through(method, params, mode, get, read)),
    notice: ({ method, params }) => {
      for (const target of staleBy.get(method)?.(params) ?? []) store.stale(...target)
    },
    forget: () => store.stale()
  }
}
