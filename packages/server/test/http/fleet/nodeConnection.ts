/** A connection to the listener for nodes, as another node opens it. */
import type { NodeAddress } from "@skein/server/Fleet"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { connect, type Socket } from "node:net"
import { connect as connectTls, type ConnectionOptions } from "node:tls"
import { Frames } from "../../../src/internal/http/adapters/nodeFrames.ts"
import { greet } from "../../../src/internal/http/adapters/nodeHandshake.ts"
import { NodeLink } from "../../../src/internal/http/adapters/nodeLink.ts"
import type { PassedHead } from "../../../src/internal/http/sessions/nodeRequests.ts"

/** The bytes of a key. */
export const secret = (key: string): Uint8Array => new TextEncoder().encode(key)

export interface Dialed {
  /** Whether the listener accepts the node, refuses it, or closes the connection without an answer. */
  readonly outcome: "accepted" | "refused" | "closed"
  readonly socket: Socket
  /** The connection, if it was accepted. */
  readonly link: NodeLink
}

interface DialOptions {
  readonly from: number
  readonly to: number
  readonly keys?: ReadonlyArray<string> | undefined
  readonly tls?: ConnectionOptions | undefined
}

/** Opens a connection, and greets as a node. */
export const dial = (
  address: NodeAddress,
  { from, keys, tls, to }: DialOptions
): Effect.Effect<Dialed, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<Dialed>((resume) => {
      const socket = tls === undefined
        ? connect(address)
        : connectTls({ ...address, rejectUnauthorized: false, ...tls })
      const frames = new Frames(socket)
      let link: NodeLink | undefined
      const settle = (outcome: Dialed["outcome"]): void => resume(Effect.succeed({ outcome, socket, link: link! }))
      socket.once(tls === undefined ? "connect" : "secureConnect", () =>
        greet(frames, { from, to, secrets: keys?.map(secret) }, (isAccepted) => {
          if (isAccepted) {
            link = new NodeLink(frames, 30_000)
          }
          settle(isAccepted ? "accepted" : "refused")
        }))
      socket.on("close", () =>
        settle("closed"))
    }),
    ({ socket }) =>
      Effect.sync(() => socket.destroy())
  )

/** Only the outcome. */
export const outcomeOf = (address: NodeAddress, options: DialOptions): Effect.Effect<Dialed["outcome"]> =>
  Effect.scoped(Effect.map(dial(address, options), ({ outcome }) => outcome))

/** Sends bytes on a connection. Returns those that arrive until it is closed, in hexadecimal. */
export const replyTo = (address: NodeAddress, bytes: Uint8Array): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const socket = connect(address, () => void socket.write(bytes))
    let text = ""
    socket.setEncoding("hex").on("data", (data) => void (text += data))
    socket.on("error", () => {})
    socket.on("close", () => resume(Effect.succeed(text)))
  })

/** Sends a request on a connection. Returns the status of its answer; undefined without an answer. */
export const passOn = (link: NodeLink, head: PassedHead, body: string): Effect.Effect<number | undefined> =>
  Effect.callback((resume) => {
    let status: number | undefined
    const done = (): void => resume(Effect.succeed(status))
    const stream = link.open({
      received: (text, _, isLast) => {
        if (text !== "") status = JSON.parse(text).status
        if (isLast) done()
      },
      closed: done
    })
    stream.send(JSON.stringify(head), Buffer.from(body), true)
  })
