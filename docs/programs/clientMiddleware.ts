import * as Client from "@skein/client/Client"
import * as Middleware from "@skein/client/Middleware"
import type { Transport } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

export interface Entry {
  readonly method: string
  readonly ok: boolean
}

const audit = (write: (entry: Entry) => Effect.Effect<void>): Middleware.Middleware => (next) => (call) =>
  Effect.onExit(next(call), (exit) => write({ method: call.method.name, ok: Exit.isSuccess(exit) }))

const redact: Middleware.Middleware = (next) => (call) =>
  Middleware.isToolCall(call)
    ? next({ ...call, params: { ...call.params, arguments: { ...call.params.arguments, name: "a guest" } } })
    : next(call)

export const open = (transport: Transport, write: (entry: Entry) => Effect.Effect<void>) =>
  Client.make(transport, { middleware: [audit(write), redact] })
