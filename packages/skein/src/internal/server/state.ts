/**
 * State of users and sessions, and values that live as long as a session.
 */
import type { PerSession as CorePerSession } from "@skein/server/PerSession"
import * as Core from "@skein/server/AsyncDefinition"
import * as Effect from "effect/Effect"
import type { Awaitable, Duration, StandardSchema } from "../base/types.ts"

declare const valueOf: unique symbol

/** A state: made by `state`, and read and changed with `state` of a handler's context. */
export interface State<in out A> {
  readonly name: string
  readonly [valueOf]: (value: A) => A
}

/** The operations of a state in a handler. They reject with `StateError`. */
export interface StateOperations<A> {
  /** Returns the value of the owner, or the initial one. */
  readonly get: () => Promise<A>
  /** Writes a value. */
  readonly set: (value: A) => Promise<void>
  /**
   * Changes the value in one step, and returns the new one. The function may run several times, so it must have no effects. It
   * rejects with `Conflict` after 100 attempts.
   */
  readonly update: (change: (value: A) => A) => Promise<A>
  /**
   * As `update`, and returns another result than the new value.
   *
   * @example
   * const first = await state(queue).modify(([first, ...rest]) => [first, rest])
   */
  readonly modify: <B>(change: (value: A) => readonly [result: B, value: A]) => Promise<B>
  /** Removes the value, so that the state has the initial one again. */
  readonly remove: () => Promise<void>
}

/** The type of a state, its owner and its bounds. */
export interface StateOptions<A, In = A> {
  /**
   * The type of the value, such as `z.array(z.string())`. It validates values when they are written and when they are read, and
   * must accept the values that it returns. Values are stored as JSON. Without a schema they are not validated.
   */
  readonly schema?: StandardSchema<In, A> | undefined
  /** The value before the first write. It is not stored. */
  readonly initial: A
  /** To whom a value belongs: the authenticated `user` by default, or the `session`. */
  readonly scope?: "user" | "session" | undefined
  /** How long a value is valid after its last write: 24 hours by default. With `Infinity` it never expires. */
  readonly lifetime?: Duration | undefined
  /** The size of a value, in bytes of JSON: 65,536 by default. A larger one fails: `StateError` `TooLarge`. */
  readonly maxBytes?: number | undefined
  /** The value of an anonymous caller, with the scope `user`: none by default, or that of its session. */
  readonly anonymous?: "fail" | "session" | undefined
  /** The value in 2026-07-28, with the scope `session`: none by default, or one of the principal. */
  readonly stateless?: "fail" | "user" | undefined
}

/** Makes a schema that no state can have a type error that names the mistake. */
export type CheckedState<A, In> = [A] extends [In] ? unknown : {
  readonly schema: "The schema must accept the values that it returns: a state validates them again when it reads them"
}

/**
 * Makes a state: a value of each user or session that stays between requests. The name must be unique in a server. Values are in
 * memory, unless the server uses another store, such as `sqliteState`.
 *
 * @example
 * const cart = state("cart", { schema: z.array(z.string()), initial: [] })
 * server.tool("add", { input: z.object({ item: z.string() }) }, async ({ item }, { state }) =>
 *   state(cart).update((items) => [...items, item]))
 */
export const state = <A, In = A>(name: string, options: StateOptions<A, In> & CheckedState<A, In>): State<A> =>
  Core.state(name, options as never) as never

/** A value of each session: made by `perSession`, and acquired with `use` of a handler's context. */
export interface PerSession<out A> {
  readonly name: string
  readonly [valueOf]: () => A
}

/** The acquisition of a value of each session, its owners and its bounds. */
export interface PerSessionOptions<A> {
  /** Makes the value when a handler of the session first needs it. Its error is that of the handler, which may run again. */
  readonly acquire: () => Awaitable<A>
  /** Releases the value when the session ends. Its error is logged. */
  readonly release?: ((value: A) => Awaitable<void>) | undefined
  /** The value of a stateless request over HTTP, which has no session: none by default, or one of the principal. */
  readonly stateless?: "fail" | "user" | undefined
  /** With `stateless: "user"`, how long the value stays after its last use: 5 minutes by default. */
  readonly idleTimeout?: Duration | undefined
  /** How many values a server has at a time: 1,000 by default. One more fails: `StateError` `Full`. */
  readonly max?: number | undefined
  /** How many of them one principal has: 100 by default. One more fails: `StateError` `Full`. */
  readonly maxPerPrincipal?: number | undefined
}

/**
 * Makes a value of each session: a browser, a checkout of a repository, a connection. All handlers of the session share it, and
 * it is released when the session ends, however it ends.
 *
 * @example
 * const browser = perSession("browser", {
 *   acquire: () => chromium.launch(),
 *   release: (browser) => browser.close()
 * })
 * server.tool("open", { input: z.object({ url: z.url() }) }, async ({ url }, { use }) => {
 *   const page = await (await use(browser)).newPage()
 *   await page.goto(url)
 *   return page.title()
 * })
 */
export const perSession = <A>(name: string, options: PerSessionOptions<A>): PerSession<A> => {
  let made: Promise<CorePerSession<A, unknown>> | undefined
  const load = () => made ??= import("@skein/server/PerSession").then(({ async }) => async(name, options))
  // The context of a handler reads `get` only. The module is loaded when the first handler does.
  return { name, get: Effect.flatMap(Effect.promise(load), ({ get }) => get) } as unknown as PerSession<A>
}
