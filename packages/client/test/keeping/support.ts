/** A scripted server whose connections a test may refuse, lose, and interfere with. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Connection, Receiver, Transport } from "@skein/runtime/Connection"
import { ConnectionLost, TransportError } from "@skein/runtime/TransportError"
import type { SessionEnd } from "@skein/runtime/Session"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type * as Client from "../../src/Client.ts"
import type { Status } from "../../src/Status.ts"
import { type Script, type Scripted, scripted } from "../support/scripted.ts"

/**
 * What happens to a request on its way, instead of being delivered: it is refused, the connection is lost, or nothing at all.
 * With `after` it is delivered, and then that happens. `undefined` lets it through.
 */
export type Fate = TransportError | "lose" | "nothing" | { readonly after: TransportError | "lose" } | undefined

export interface Unsteady {
  readonly server: Scripted
  readonly transport: Transport
  /** How often it was tried to connect. */
  attempts: number
  /** The connections that are open now. */
  live: number
  /** The most that were open at once. */
  most: number
  /** Whether the next attempt to connect fails, and how. */
  refuse: (attempt: number) => TransportError | undefined
  /** What happens to a request of the client's. */
  fate: (request: JsonRpc.Outbound & { readonly _tag: "Request" }) => Fate
  /** Ends the connection that is open as lost. */
  readonly lose: (cause?: TransportError) => void
}

export const lostBy = (message = "The wire was cut", retryAfter?: number): TransportError =>
  new TransportError({ reason: new ConnectionLost({ message }), retryAfter })

export const unsteady = (script: Script, more?: Partial<Transport>): Unsteady => {
  const server = scripted(script)
  let end: ((cause: TransportError) => void) | undefined
  const wrap = (inner: Connection): Connection => {
    let receiver: Receiver | undefined
    let over = false
    const mine = (cause: TransportError) => {
      if (over) return
      over = true
      receiver?.end({ _tag: "Lost", cause })
      Effect.runSync(inner.close)
    }
    end = mine
    return {
      ...more,
      open: (given) => {
        receiver = given
        inner.open({
          message: (message) => given.message(message),
          end: (end) => {
            if (over) return
            over = true
            given.end(end)
          }
        })
      },
      send: (message) => {
        const fate = message._tag === "Request" ? it.fate(message) : undefined
        if (fate === undefined) return inner.send(message)
        if (fate === "nothing") return true
        let what = fate
        if (typeof what === "object" && "after" in what) {
          what = what.after
          inner.send(message)
        }
        const cause = what
        queueMicrotask(() => {
          if (cause === "lose") mine(lostBy())
          else receiver!.refused!((message as JsonRpc.Request).id, cause)
        })
        return true
      },
      get drained() {
        return inner.drained
      },
      get close() {
        return Effect.suspend(() => inner.close)
      }
    }
  }
  const it: Unsteady = {
    server,
    attempts: 0,
    live: 0,
    most: 0,
    refuse: () => undefined,
    fate: () => undefined,
    lose: (cause = lostBy()) => end!(cause),
    transport: {
      ...more,
      connect: Effect.suspend(() => {
        const refused = it.refuse(++it.attempts)
        if (refused !== undefined) return Effect.fail(refused)
        const counted = Effect.acquireRelease(
          Effect.sync(() => it.most = Math.max(it.most, ++it.live)),
          () =>
            Effect.sync(() => {
              it.live--
              // What is over is not held on to.
              end = undefined
            })
        )
        return Effect.andThen(counted, Effect.map(server.transport.connect, wrap))
      })
    }
  }
  return it
}

/** One turn of the event loop. */
export const turn = Effect.callback<void>((resume) => {
  const handle = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(handle))
})

/** Waits, in turns of the event loop, until it is so; no longer than 1,000 of them. */
export const until = (so: () => boolean, what = "it never came to that"): Effect.Effect<void> =>
  Effect.gen(function*() {
    for (let turns = 0; !so(); turns++) {
      if (turns === 1_000) return yield* Effect.die(new Error(what))
      yield* turn
    }
  })

/** Some turns, in which nothing of note should happen. */
export const quiet = Effect.repeat(turn, { times: 10 })

/** Gathers the statuses of a client from now on. */
export const watch = (client: Client.Client) =>
  Effect.gen(function*() {
    const seen: Array<Status> = []
    const fiber = yield* Effect.forkChild(
      Stream.runForEach(client.status, (status) => Effect.sync(() => void seen.push(status))),
      { startImmediately: true }
    )
    return { seen, done: Fiber.join(fiber), tags: () => seen.map(({ _tag }) => _tag) }
  })

export const endMessage = (end: SessionEnd): string => end._tag === "Lost" ? end.cause.message : end._tag
