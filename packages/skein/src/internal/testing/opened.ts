/**
 * Servers that tests open and close.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"

/** A server that runs until it is closed. */
export interface Opened extends AsyncDisposable {
  /** Stops the server with all of its connections. Further calls return the same promise. */
  readonly close: () => Promise<void>
  /** Stops the server at the end of a block: `await using server = await FaultyServer.http(scenario)`. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Opens a server in a scope of its own, and adds the members that close it to those of `describe`. Nothing is left open if that
 * fails.
 */
export const open = async <A, B extends object>(
  server: Effect.Effect<A, never, Scope.Scope>,
  describe: (server: A) => B
): Promise<B & Opened> => {
  const scope = Scope.makeUnsafe()
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => closing ??= Effect.runPromise(Scope.close(scope, Exit.void))
  try {
    const described = describe(await Effect.runPromise(Scope.provide(server, scope)))
    // The members include getters, which must stay getters.
    return Object.defineProperties(
      { close, [Symbol.asyncDispose]: close },
      Object.getOwnPropertyDescriptors(described)
    ) as B & Opened
  } catch (error) {
    await close()
    throw error
  }
}
