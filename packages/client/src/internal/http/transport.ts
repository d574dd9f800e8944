/**
 * The HTTP transport over any wire.
 */
import type { Transport } from "@skein/runtime/Connection"
import { TransportError } from "@skein/runtime/TransportError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { HttpConnection } from "./connection.ts"
import * as LegacySse from "../legacySse/legacySse.ts"
import { resolve, type Settings } from "./settings.ts"
import type { Wire } from "./httpClient.ts"

/** One wire for each connection; the connection closes it. */
export const transport = (makeWire: () => Wire, settings: Settings): Transport => {
  const connect = Effect.flatMap(Effect.context<Scope.Scope>(), (context) => {
    const resolved = resolve(settings, context)
    if (resolved instanceof TransportError) return Effect.fail(resolved)
    return Effect.uninterruptible(Effect.suspend(() => {
      const connection = new HttpConnection(makeWire(), resolved, context, LegacySse.open)
      return Effect.as(connection.closeWith(Context.get(context, Scope.Scope)), connection)
    }))
  })
  return {
    connect,
    connectWith: (variant) =>
      variant === "sse" ? Effect.tap(connect, (connection) => connection.becomeLegacy) : connect,
    reconnects: true
  }
}
