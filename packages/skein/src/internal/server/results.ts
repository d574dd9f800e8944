/**
 * A cache of results, an audit log, and other messages for errors.
 */
import type { HandlerContext as CoreContext } from "@skein/server/HandlerContext"
import * as Effect from "effect/Effect"
import { defineLazily, type Definition } from "../base/definition.ts"
import type { McpError } from "../base/errors.ts"
import type { Revision } from "../base/messages.ts"
import type { Awaitable, Duration } from "../base/types.ts"
import type { HandlerContext } from "./handlerContext.ts"
import type { Methods } from "./limits.ts"
import type { ResourceRead, ToolChoice } from "./middleware.ts"
import type { McpRequest } from "./request.ts"

/** The results that are cached, their lifetime, and the bounds. */
export interface ResultCacheOptions {
  /** The tools: by default those with `readOnlyHint` among their annotations. */
  readonly tools?: ToolChoice | undefined
  /** The resources, by URI or with a predicate. None by default. */
  readonly resources?: ReadonlyArray<string> | ((read: ResourceRead) => boolean) | undefined
  /** How long a result is fresh: 1 minute by default. Use two caches for different times. */
  readonly lifetime?: Duration | undefined
  /** Whether all callers share the results: `false` by default. Only for results that depend on nothing but the arguments. */
  readonly share?: boolean | undefined
  /** The number of results: 1,000 by default. At the bound the owner with the most loses its least recently used one. */
  readonly maxEntries?: number | undefined
  /** The size of all results and their keys, in bytes of JSON: 16 MiB by default. A larger result is not stored. */
  readonly maxBytes?: number | undefined
}

/**
 * Caches the results of tools and resources: equal calls of an owner (its principal, session or connection) run once for a
 * while. Errors, tasks, and calls for which the handler has asked the client are not cached. `clearCache` of the server removes
 * results.
 *
 * @example
 * server.use(resultCache({ tools: ["rates"], lifetime: "10 minutes", share: true }))
 */
export const resultCache = (options?: ResultCacheOptions): Definition =>
  defineLazily(() => import("@skein/server/ResultCache"), ({ layer }) => layer(options as never))

/**
 * Keeps the result of the current request out of the cache.
 *
 * @example
 * server.tool("search", {}, async (_, context) => {
 *   const { hits, isComplete } = await search()
 *   if (!isComplete) await skipCache(context)
 *   return hits
 * })
 */
export const skipCache = async (context: HandlerContext): Promise<void> => {
  const { skip } = await import("@skein/server/ResultCache")
  await (context as unknown as CoreContext).run(skip)
}

/** The entry of one request in an audit log. Values that the client chose are cut at 128 characters. */
export interface AuditEntry {
  readonly method: string
  /** The name of the tool or prompt, or the URI of the resource, as the client sent it. */
  readonly target: string | undefined
  /** The first eight characters of the id of the task that the request is about, or has become. */
  readonly task: string | undefined
  readonly id: string | number
  /** The id of the principal. `undefined` for an anonymous caller. */
  readonly principal: string | undefined
  /** The name and version that the client claims to have. Do not trust it. */
  readonly client: string | undefined
  readonly revision: Revision
  /**
   * `ok`: a result. `tool_error`: a tool's result with `isError`. `input_required`: input requests. `error`: a JSON-RPC error,
   * with its `code`. `cancelled`: by the client, or by the end of its connection. `defect`: an unexpected error, whose cause is
   * in the log.
   */
  readonly outcome: "ok" | "tool_error" | "input_required" | "error" | "cancelled" | "defect"
  /** The code of the JSON-RPC error. */
  readonly code: number | undefined
  readonly durationMs: number
  /** The value of the option `arguments`. Absent without the option. */
  readonly arguments?: unknown
}

/** The entries of an audit log, and where they go. */
export interface AuditLogOptions {
  /**
   * Receives the entries. The answer waits for it. If it fails, an error is logged and the answer is sent. By default an entry
   * is a line of the server's log, at the level `Info`.
   */
  readonly sink?: ((entry: AuditEntry) => Awaitable<void>) | undefined
  /** The methods that are recorded: `all` by default, `subscriptions/listen` included, when it ends. */
  readonly methods?: Methods | undefined
  /** `true` adds the raw arguments. A function adds its return value. `false` by default. */
  readonly arguments?: boolean | ((request: McpRequest) => unknown) | undefined
}

/**
 * Records each request when it ends: who called what, and how it ended. Add it first, so that it also contains the requests
 * that other middleware refuses.
 *
 * @example
 * server.use(auditLog({ methods: ["tools/call"], sink: (entry) => database.insert(entry) }))
 */
export const auditLog = ({ sink, ...options }: AuditLogOptions = {}): Definition =>
  defineLazily(() => import("@skein/server/AuditLog"), ({ layer }) =>
    layer(
      {
        ...options,
        ...(sink === undefined ? undefined : { sink: (entry) => Effect.promise(async () => sink(entry)) })
      } as Parameters<typeof layer>[0]
    ))

/** An error of a handler. */
export interface HandlerFailure {
  readonly kind: "tool" | "resource" | "prompt"
  /** The name of the tool or the prompt, or the URI of the resource. */
  readonly name: string
  readonly error: unknown
  /** Whether the error is an unexpected one, whose message may contain secrets. */
  readonly isDefect: boolean
  /** A reference for the message. If the client sees another error, the cause is logged with it. */
  readonly reference: string
  readonly request: McpRequest
}

/** The errors that clients see, and where that applies. */
export interface ErrorMappingOptions {
  /**
   * Decides what the client sees: a text (as a result with `isError` for a tool, else as `-32603`), an `McpError`, `null` for a
   * reference alone, or `undefined` for the error as it is.
   */
  readonly map: (failure: HandlerFailure) => string | McpError | null | undefined
  /** The tools whose errors are mapped. All by default. */
  readonly tools?: ToolChoice | undefined
  /** Whether errors of resources and prompts are mapped: `true` by default. */
  readonly others?: boolean | undefined
}

/**
 * Changes what clients see of the errors of handlers. Add it before `retry`, so that it sees the last error only.
 *
 * @example
 * server.use(errorMapping({
 *   map: ({ error, reference }) =>
 *     error instanceof DatabaseError ? `The database is down. Try again in a minute (${reference})` : undefined
 * }))
 */
export const errorMapping = ({ map, ...options }: ErrorMappingOptions): Definition =>
  defineLazily(() => import("@skein/server/ErrorMapping"), ({ hidden, layer, message, unchanged }) =>
    layer({
      ...options as {},
      map: (failure) => {
        const mapped = map(failure as unknown as HandlerFailure)
        if (mapped === undefined) return unchanged
        if (mapped === null) return hidden
        return typeof mapped === "string" ? message(mapped) : mapped as never
      }
    }))
