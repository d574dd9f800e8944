/**
 * Middleware of a client: functions around its calls, for every method in all revisions. It mirrors the server's
 * `Middleware`.
 *
 * A middleware is a function from handler to handler. The handler gets a {@link Call}: the method, its parameters and
 * its options. It may change them, make the call several times, answer without it, or change the result or the failure.
 *
 * - The option `middleware` of `Client.make` lists them. The one that is listed first is outermost. The option
 *   `middleware` of `ClientPool.make` applies to each server of a pool, and `call.server` is the name of the server.
 * - A middleware is applied once per client; the handler that it returns is called for each call.
 * - It is outside of everything that the client does for a call: the cache, input requests, awaiting a task, checking
 *   the result, and sending a lost request again happen inside of `next`. The schema of a typed call (`output`) is
 *   applied outside of it.
 * - It sees every call that the methods of `Client` make, page by page for lists, and those that the client makes to
 *   follow a task (`tasks/get`, for instance). It does not see the handshake, the heartbeat or the streams of
 *   `changes`.
 * - A service that it needs is captured where it is made. See the example of an audit log.
 * - {@link async} makes one of an async function.
 *
 * @example
 * **Retry.** Repeat reads that timed out. `next(call)` may be run any number of times.
 *
 * ```ts
 * const retry: Middleware.Middleware = (next) => (call) =>
 *   call.method.name === "tools/call"
 *     ? next(call)
 *     : Effect.retry(next(call), { times: 2, while: ({ reason }) => reason._tag === "Timeout" })
 * ```
 *
 * @example
 * **Audit.** Record who called which tool, and how it ended.
 *
 * ```ts
 * const audit = (log: AuditLog["Service"]): Middleware.Middleware => (next) => (call) =>
 *   Effect.onExit(
 *     next(call),
 *     (exit) => log.write({ server: call.server, method: call.method.name, ok: Exit.isSuccess(exit) })
 *   )
 *
 * const program = Effect.gen(function*() {
 *   const client = yield* Client.make(transport, { middleware: [audit(yield* AuditLog)] })
 * })
 * ```
 *
 * @example
 * **Cache.** Answer a call of one tool from a cache of the application.
 *
 * ```ts
 * const rates = (cache: Cache.Cache<string, JsonObject, ClientError>): Middleware.Middleware => (next) => (call) =>
 *   Middleware.isToolCall(call, "exchange_rates")
 *     ? Cache.get(cache, JSON.stringify(call.params.arguments))
 *     : next(call)
 * ```
 *
 * @example
 * **Redaction.** Remove a secret from the arguments of each tool.
 *
 * ```ts
 * const redact: Middleware.Middleware = (next) => (call) =>
 *   Middleware.isToolCall(call)
 *     ? next({ ...call, params: { ...call.params, arguments: { ...call.params.arguments, apiKey: undefined } } })
 *     : next(call)
 * ```
 */
import type { CallToolRequestParams } from "@skein/protocol/CallTool"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import { ClientError, Denied } from "./ClientError.ts"
import type { CallToolOptions } from "./internal/base/callOptions.ts"

/**
 * Fails a call that the host does not allow, with `Denied` and this message. Nothing is sent. A model receives the
 * message as the failure of its call.
 *
 * @example
 * const readOnly: Middleware.Middleware = (next) => (call) =>
 *   Middleware.isToolCall(call, "delete") ? Middleware.deny("Deleting is not allowed here") : next(call)
 */
export const deny = (message: string): Effect.Effect<never, ClientError> =>
  Effect.fail(new ClientError({ reason: new Denied({ message }) }))

/** One call of a method. To change it, pass a copy on: `next({ ...call, params })`. */
export interface Call {
  /**
   * The name that the host gives the server: its name in a pool, or the option `label` of the client. `undefined`
   * without one.
   */
  readonly server: string | undefined
  /** The entry of the method table: `call.method.name` is `tools/call`, for instance. */
  readonly method: Method.RequestMethod<unknown, unknown>
  /** The parameters, as the newest revision has them. */
  readonly params: JsonObject
  /** The options of the call: its timeouts, its use of the cache, whether it is retried, its progress. */
  readonly options: CallToolOptions
}

/**
 * Makes calls: the client itself, or a middleware with all handlers inside of it. The result is that of the method, as
 * the newest revision has it; for `startTask`, it is the `RemoteTask` if the server answers with a task.
 */
export type Handler = (call: Call) => Effect.Effect<JsonObject, ClientError>

/** Wraps a handler. It is applied once per client, not once per call. */
export type Middleware = (next: Handler) => Handler

/** The last argument of an async middleware. */
export interface AsyncContext {
  /** Aborts when the call is cancelled. */
  readonly signal: AbortSignal
}

/**
 * Makes a middleware of an async function. `next` makes the call, or another one, and returns a promise of the result; it
 * rejects with the `ClientError` of the call. An error that the function throws is that of the call: throw a `ClientError`,
 * or the error of `next`. Any other error is unexpected: it rejects the promise of an `AsyncClient`, and is a defect of a
 * `Client`.
 *
 * @example
 * const timed = Middleware.async(async (call, next) => {
 *   const start = performance.now()
 *   try {
 *     return await next()
 *   } finally {
 *     console.error(call.method.name, performance.now() - start)
 *   }
 * })
 */
export { asyncMiddleware as async }

const asyncMiddleware = (
  handle: (
    call: Call,
    next: (call?: Call) => Promise<JsonObject>,
    context: AsyncContext
  ) => JsonObject | PromiseLike<JsonObject>
): Middleware =>
(next) =>
(call) =>
  Effect.scoped(Effect.gen(function*() {
    // The calls run in the context of the caller, and end with the function.
    const run = yield* FiberSet.makeRuntimePromise<never, JsonObject, ClientError>()
    return yield* Effect.catchDefect(
      Effect.promise(async (signal) => handle(call, (changed = call) => run(next(changed)), { signal })),
      (error) => error instanceof ClientError ? Effect.fail(error) : Effect.die(error)
    )
  }))

/** A call of a tool. */
export interface ToolCall extends Call {
  readonly params: JsonObject & CallToolRequestParams
}

/** Whether a call is that of a tool, or of the tool with that name. */
export const isToolCall = (call: Call, name?: string): call is ToolCall =>
  call.method.name === Method.CallTool.name && (name === undefined || call.params["name"] === name)
