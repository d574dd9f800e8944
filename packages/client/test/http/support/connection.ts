/** The client's side of an HTTP connection without a client, messages, and waits for sockets. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Connection, End, Receiver } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import type * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as Http from "../../../src/Http.ts"
import { type FixedBounds, withBounds } from "./changedBounds.ts"

export type Json = any

/** A request that a scripted server received, with a body that the tests know. */
export type Exchange = ScriptedHttpServer.Exchange<Json>

export const answer = (id: JsonRpc.Id, result: Json = {}): Json => ({ jsonrpc: "2.0", id, result })
export const note = (n: number): Json => ({ jsonrpc: "2.0", method: "notifications/test", params: { n } })

/** Records the messages, refusals, gaps and ends of a connection. */
export class RecordingReceiver implements Receiver {
  readonly messages: Array<Json> = []
  readonly refusals: Array<readonly [JsonRpc.Id, TransportError]> = []
  readonly ends: Array<End> = []
  readonly gaps: Array<TransportError | undefined> = []

  message(message: JsonRpc.Inbound): void {
    this.messages.push(message)
  }
  refused(id: JsonRpc.Id, error: TransportError): void {
    this.refusals.push([id, error])
  }
  gap(error: TransportError | undefined): void {
    this.gaps.push(error)
  }
  end(end: End): void {
    this.ends.push(end)
  }
  answer(id: JsonRpc.Id): Json {
    return this.messages.find((message) => message.id === id && message._tag !== "Request")
  }
  error(id: JsonRpc.Id): TransportError | undefined {
    return this.refusals.find(([refused]) => refused === id)?.[1]
  }
}

export interface Side {
  readonly connection: Connection
  readonly received: RecordingReceiver
  readonly request: (id: JsonRpc.Id, method: string, params?: Json) => void
  readonly notify: (method: string, params?: Json) => void
}

/** The params of a 2026-07-28 request. */
export const modern = (params: Json = {}): Json => ({
  ...params,
  _meta: {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {}
  }
})

/** Connects without sending. The grace is 0 because nothing advances the test clock while the connection closes. */
export const connected = (
  options: Http.Options,
  bounds: Partial<FixedBounds> = {}
): Effect.Effect<Side, TransportError, Scope.Scope> =>
  Effect.map(withBounds(Http.transport({ shutdownTimeout: 0, ...options }), bounds).connect, (connection) => {
    const received = new RecordingReceiver()
    connection.open(received)
    return {
      connection,
      received,
      request: (id, method, params) => void connection.send({ _tag: "Request", id, method, params }),
      notify: (method, params) => void connection.send({ _tag: "Notification", method, params })
    }
  })

/** Waits until `holds` returns true: up to a minute, or that many turns of the event loop. */
export const until = (holds: () => boolean, turns = Infinity): Effect.Effect<void> => {
  const begun = performance.now()
  const wait = (left: number): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (holds()) return Effect.void
      if (left === 0 || performance.now() - begun > 60_000) {
        return Effect.die(new Error(`The condition was not met: ${holds}`))
      }
      return Effect.andThen(
        Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void))),
        wait(left - 1)
      )
    })
  return wait(turns)
}

/**
 * Waits 200 turns of the event loop and at least 10 ms, in which a message that must not arrive would arrive. On a loaded
 * machine 200 turns can pass before the kernel delivers what was sent.
 */
export const settle: Effect.Effect<void> = Effect.suspend(() => {
  const begun = performance.now()
  let turns = 200
  return until(() => turns-- <= 0 && performance.now() - begun >= 10)
})

/** Advances the test clock in steps, and settles before each, until `holds` returns true: up to a minute of real time. */
export const advanceUntil = (step: Duration.Input, holds: () => boolean): Effect.Effect<void> => {
  const begun = performance.now()
  return Effect.andThen(
    settle,
    Effect.whileLoop({
      while: () => !holds(),
      body: () =>
        performance.now() - begun > 60_000
          ? Effect.die(new Error(`The condition was not met: ${holds}`))
          : Effect.andThen(TestClock.adjust(step), settle),
      step: () => {}
    })
  )
}

/** Connects and completes the handshake of a session. */
export const entered = (options: Http.Options, bounds?: Partial<FixedBounds>) =>
  Effect.gen(function*() {
    const side = yield* connected(options, bounds)
    side.request("init", "initialize", { protocolVersion: "2025-11-25", capabilities: {} })
    yield* until(() => side.received.answer("init") !== undefined)
    side.notify("notifications/initialized")
    return side
  })
