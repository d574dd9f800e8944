/**
 * Middleware of clients, as async functions.
 */
import { Denied } from "@skein/client/ClientError"
import * as Core from "@skein/client/Middleware"
import type { Opaque } from "../base/definition.ts"
import type { CallToolResult, JsonObject } from "../base/messages.ts"
import type { Awaitable } from "../base/types.ts"
import type { CallToolOptions } from "./calls.ts"
import { ClientError } from "./errors.ts"

/** A function around the calls of a client. `middleware` makes one. */
export interface ClientMiddleware extends Opaque<"client middleware"> {}

/** One call of a method. To change it, pass a copy on: `next({ ...call, params })`. */
export interface Call {
  /** The name that the host gives the server: its name in a pool, or the option `label` of the client. */
  readonly server: string | undefined
  /** The method: `call.method.name` is `tools/call`, for instance. */
  readonly method: { readonly name: string }
  /** The parameters, as the newest revision has them. */
  readonly params: JsonObject
  /** The options of the call: its timeouts, its use of the cache, whether it is retried, its progress. */
  readonly options: Omit<CallToolOptions, "signal" | "task">
}

/** A call of a tool. */
export interface ToolCall extends Call {
  readonly params: JsonObject & { readonly name: string; readonly arguments?: JsonObject }
}

/**
 * Makes a middleware of an async function: the option `middleware` of a client or a pool. `next` makes the call, or another
 * one, and returns a promise of the result. The function may change the call and the result, make the call several times, or
 * answer without it. The signal aborts when the call is cancelled.
 *
 * It runs for every call of the client's methods, page by page for lists, and for those that follow a task. It does not see
 * the handshake, the heartbeat and `changes`. The cache, questions and retries happen inside of `next`.
 *
 * @example
 * const timed = middleware(async (call, next) => {
 *   const start = performance.now()
 *   try {
 *     return await next()
 *   } finally {
 *     console.error(call.method.name, performance.now() - start)
 *   }
 * })
 * const client = await AsyncClient.connect(url, { middleware: [timed] })
 */
export const middleware = (
  handle: (
    call: Call,
    next: (call?: Call) => Promise<JsonObject>,
    context: { readonly signal: AbortSignal }
  ) => Awaitable<JsonObject | CallToolResult>
): ClientMiddleware => {
  const value = Core.async(handle as never) as unknown as ClientMiddleware
  made.add(value)
  return value
}

const made = /* @__PURE__ */ new WeakSet<object>()

/** Refuses a middleware of another form, which would be called with other arguments. */
export const checkMiddleware = (all: ReadonlyArray<ClientMiddleware> = []): void => {
  if (all.every((value) => made.has(value))) return
  throw new TypeError("a middleware of a client is made by middleware(async (call, next) => …) of skein/client")
}

/**
 * Rejects a call that the host does not allow, with the reason `Denied` and this message. Nothing is sent. A model receives the
 * message as the failure of its call. It throws: nothing after it runs.
 *
 * @example
 * const readOnly = middleware(async (call, next) =>
 *   isToolCall(call, "delete") ? deny("Deleting is not allowed here") : next())
 */
export const deny = (message: string): never => {
  throw new ClientError({ reason: new Denied({ message }) })
}

/** Whether a call is that of a tool, or of the tool with that name. */
export const isToolCall: (call: Call, name?: string) => call is ToolCall = Core.isToolCall as never
