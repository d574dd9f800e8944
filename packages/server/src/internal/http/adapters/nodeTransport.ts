/**
 * The transport between the nodes of a fleet. A node opens one connection to each node that it passes requests on to, and all
 * of these requests share it.
 */
import type { TransportError } from "@skein/runtime/TransportError"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { connect, createServer, type Socket } from "node:net"
import { StringDecoder } from "node:string_decoder"
import type { TLSSocket } from "node:tls"
import type { NodeAddress, NodeRequests, Receiver, Service as Fleet } from "../../../Fleet.ts"
import { bytesOf } from "../../../RequestState.ts"
import type { NodeTransport, PassedAnswer, PassedHead } from "../sessions/nodeRequests.ts"
import { NodeCertificates } from "./nodeCertificates.ts"
import { makeConnections } from "./nodeConnections.ts"
import { Frames } from "./nodeFrames.ts"
import { greet, refuse, type Secrets, welcome } from "./nodeHandshake.ts"
import { type LinkStream, maxHeadBytes, NodeLink, type StreamHandler } from "./nodeLink.ts"
import * as server from "./nodeServer.ts"
import { parseHead, receive } from "./passedRequest.ts"

// How many addresses of nodes are stored. The oldest of a node that has gone is forgotten.
const maxAddresses = 1_024

// How many connections of other nodes may be open.
const maxConnections = 4_096

// Milliseconds between two warnings of connections that cannot be opened.
const warnInterval = 60_000

// How long a connection to a node may take to open, and its address to arrive, in milliseconds, and be idle before this side closes it.
const connectTimeout = 2_000
const idleTimeout = 30_000
const findInterval = 50

// How long the last bytes of answers may take to be sent, in milliseconds.
const flushTimeout = 2_000

/** The addresses of the other nodes, which they send through the fleet. */
class Addresses implements Receiver {
  readonly #fleet: Fleet
  readonly #known = new Map<number, NodeAddress>()
  #own: NodeAddress | undefined

  constructor(fleet: Fleet) {
    this.#fleet = fleet
  }

  canReach(node: number): boolean {
    return this.#known.has(node) || this.#fleet.isServing(node)
  }

  /** The address of a node, if it has arrived. */
  get(node: number): NodeAddress | undefined {
    return this.#known.get(node)
  }

  /** The address of a node. That of one that has begun a moment ago may be on its way. */
  find(node: number, left = connectTimeout): Effect.Effect<NodeAddress | undefined> {
    return Effect.suspend(() => {
      const known = this.#known.get(node)
      if (known !== undefined || left <= 0) return Effect.succeed(known)
      return Effect.andThen(Effect.sleep(findInterval), this.find(node, left - findInterval))
    })
  }

  /** Sends the address of this node to all others. */
  announce(own: NodeAddress): void {
    this.#own = own
    this.#fleet.broadcast({ _tag: "Address", node: this.#fleet.node, address: own, isAnswer: false })
  }

  message(message: Parameters<Receiver["message"]>[0]): void {
    if (message._tag !== "Address") return
    const { address, isAnswer, node } = message
    this.#known.set(node, address)
    if (this.#known.size > maxAddresses) {
      for (const one of this.#known.keys()) {
        if (this.#fleet.isServing(one)) continue
        this.#known.delete(one)
        break
      }
    }
    if (isAnswer || this.#own === undefined) return
    this.#fleet.send(node, { _tag: "Address", node: this.#fleet.node, address: this.#own, isAnswer: true })
  }

  gap(): void {
    if (this.#own !== undefined) this.announce(this.#own)
  }
}

/** The parts of a node that send and receive requests. */
interface Parts {
  readonly node: number
  readonly addresses: Addresses
  readonly secrets: Secrets
  readonly certificates: NodeCertificates | undefined
  readonly run: (effect: Effect.Effect<unknown>) => void
  readonly now: () => number
  /** How long an answer may be silent, in milliseconds; undefined if it may be silent for long. */
  readonly silence: number | undefined
}

const refusedBy = (node: number): string => `Node ${node} refuses this node: their nodeRequests must agree`

/** A connection to a node, which may be opening. */
interface Connection {
  readonly address: NodeAddress
  readonly socket: Socket
  link: NodeLink | undefined
  /** Called when it is open, or cannot be opened. */
  readonly waiting: Array<(link: NodeLink | undefined) => void>
}

/** The connections to other nodes. */
class Connections {
  readonly #parts: Parts
  readonly #open = new Map<number, Connection>()
  #warnedAt = -Infinity

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Calls `use` with a connection, at once if one is open. */
  to(node: number, use: (link: NodeLink | undefined) => void): void {
    const { addresses, run } = this.#parts
    const address = addresses.get(node)
    if (address !== undefined) return this.#use(node, address, use)
    run(Effect.map(addresses.find(node), (found) => found === undefined ? use(undefined) : this.#use(node, found, use)))
  }

  #use(node: number, address: NodeAddress, use: (link: NodeLink | undefined) => void): void {
    const known = this.#open.get(node)
    const isSame = known?.address.host === address.host && known.address.port === address.port
    if (known !== undefined && isSame && known.link?.isOpen !== false) {
      if (known.link === undefined) known.waiting.push(use)
      else use(known.link)
      return
    }
    known?.link?.end()
    this.#connect(node, address).waiting.push(use)
  }

  #warn(message: string): void {
    const { now, run } = this.#parts
    if (now() - this.#warnedAt < warnInterval) return
    this.#warnedAt = now()
    run(Effect.logWarning(message))
  }

  #connect(node: number, address: NodeAddress): Connection {
    const { certificates, node: from, secrets } = this.#parts
    const socket = certificates === undefined
      ? connect(address)
      : process.getBuiltinModule("node:tls").connect({ ...address, ...certificates.connectOptions() })
    const connection: Connection = { address, socket, link: undefined, waiting: [] }
    this.#open.set(node, connection)
    const settle = (): void => {
      clearTimeout(timer)
      for (const use of connection.waiting.splice(0)) use(connection.link)
    }
    const timer = setTimeout(() => socket.destroy(), connectTimeout)
    const frames = new Frames(socket)
    socket.once(
      certificates === undefined ? "connect" : "secureConnect",
      () =>
        greet(frames, { from, to: node, secrets }, (isAccepted) => {
          if (isAccepted) {
            connection.link = new NodeLink(frames, idleTimeout)
            return settle()
          }
          this.#warn(refusedBy(node))
          socket.destroy()
        })
    )
    socket.on("error", (error: Error & { readonly code?: string }) => {
      // A system error is that of a node that has gone.
      const isSystem = /^E(?!RR_|PROTO)/.test(error.code ?? "")
      if (!isSystem) this.#warn(`The connection to node ${node} cannot be opened: ${error.message}`)
    })
    socket.on("close", () => {
      if (this.#open.get(node) === connection) this.#open.delete(node)
      settle()
    })
    return connection
  }

  close(): void {
    for (const { socket } of this.#open.values()) socket.destroy()
  }
}

/** A request to another node, and its answer. */
class SentRequest implements StreamHandler {
  readonly #answer: PassedAnswer
  readonly #parts: Parts
  #link: NodeLink | undefined = undefined
  #stream: LinkStream | undefined = undefined
  #hasBegun = false
  #isOver = false
  #decoder: StringDecoder | undefined = undefined
  #timer: NodeJS.Timeout | undefined = undefined
  /** The parts that arrive while the client is slow. */
  #waiting: Array<readonly [bytes: Buffer, isLast: boolean]> | undefined = undefined

  constructor(answer: PassedAnswer, parts: Parts) {
    this.#answer = answer
    this.#parts = parts
  }

  send(link: NodeLink | undefined, head: string, body: string): void {
    if (this.#isOver) return
    if (link?.isOpen !== true) return this.fail()
    this.#link = link
    this.#stream = link.open(this)
    this.#stream.send(head, Buffer.from(body), true)
    this.#awaitPart()
  }

  /** Awaits a part for as long as an answer may be silent. Then the connection may be lost: the next request opens another one. */
  #awaitPart(): void {
    const { silence } = this.#parts
    if (silence === undefined || this.#isOver) return
    this.#timer = setTimeout(() => {
      this.#link!.end()
      this.fail()
    }, silence)
  }

  received(head: string, bytes: Buffer, isLast: boolean): void {
    if (this.#isOver) return
    if (this.#waiting !== undefined) return void this.#waiting.push([bytes, isLast])
    this.#timer?.refresh()
    if (!this.#hasBegun) {
      this.#hasBegun = true
      const { headers, status } = parseHead(head)
      if (typeof status !== "number" || headers === undefined) return this.fail()
      if (!this.#answer.begin(status, headers)) return this.stop()
    }
    const text = isLast && this.#decoder === undefined
      ? bytes.toString("utf8")
      : (this.#decoder ??= new StringDecoder("utf8")).write(bytes)
    const drained = text === "" ? undefined : this.#answer.part(text)
    if (drained !== undefined) return this.#pause(drained, bytes.length, isLast)
    this.#stream!.take(bytes.length)
    if (!isLast || this.#isOver) return
    this.#end(true)
    this.#answer.end()
  }

  /** Takes no further parts until the client has taken this one. */
  #pause(drained: Effect.Effect<void>, bytes: number, isLast: boolean): void {
    clearTimeout(this.#timer)
    this.#waiting = isLast ? [[nothing, true]] : []
    this.#parts.run(Effect.map(drained, () => {
      const waiting = this.#waiting!
      this.#waiting = undefined
      this.#stream!.take(bytes)
      this.#awaitPart()
      for (const [bytes, isLast] of waiting) this.received("", bytes, isLast)
    }))
  }

  closed(): void {
    this.fail()
  }

  fail(): void {
    if (this.#isOver) return
    this.#end(false)
    this.#answer.fail(this.#stream !== undefined)
  }

  /** Gives the request up. */
  stop(): void {
    this.#end(false)
  }

  #end(isComplete: boolean): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#stream?.end(isComplete)
  }
}

const nothing = Buffer.alloc(0)

const makeSend = (parts: Parts, connections: Connections): NodeTransport["send"] => (node, head, body = "", answer) => {
  const request = new SentRequest(answer, parts)
  let text: string | undefined
  try {
    text = JSON.stringify(head satisfies PassedHead)
  } catch (cause) {
    // A claim of the principal may not be JSON.
    parts.run(Effect.logError("failed to pass a request on to another node", cause))
  }
  if (text === undefined || Buffer.byteLength(text) > maxHeadBytes) request.fail()
  else connections.to(node, (link) => request.send(link, text, body))
  return () => request.stop()
}

/** Listens for other nodes until the scope closes. */
const listen = Effect.fnUntraced(function*(
  { addresses, certificates, node, secrets }: Parts,
  { host, port }: NodeAddress,
  handle: NonNullable<NodeTransport["handle"]>
): Effect.fn.Return<NodeAddress, TransportError, Scope.Scope> {
  const links = new Map<Socket, NodeLink>()
  const { add, sockets } = makeConnections(maxConnections, (socket) => !links.has(socket))
  const accept = (socket: Socket): void => {
    add(socket)
    const frames = new Frames(socket)
    const timer = setTimeout(() => socket.destroy(), connectTimeout)
    socket.on("close", () => {
      clearTimeout(timer)
      links.delete(socket)
    })
    if (certificates?.isOfNode(socket as TLSSocket) === false) frames.receive = () => refuse(frames)
    else {
      welcome(frames, { node, secrets, isKnown: (from) => addresses.canReach(from) }, () => {
        clearTimeout(timer)
        // The node that has opened the connection closes it first.
        links.set(socket, new NodeLink(frames, 2 * idleTimeout, (stream) => receive(stream, handle)))
      })
    }
  }
  const listener = certificates?.createServer(connectTimeout) ?? createServer()
  listener.on(certificates === undefined ? "connection" : "secureConnection", accept)
  const close = Effect.callback<void>((resume) => {
    listener.close(() => resume(Effect.void))
    for (const socket of sockets.keys()) {
      const link = links.get(socket)
      if (link === undefined) socket.destroy()
      else link.end()
    }
  })
  const { port: own } = yield* Effect.acquireRelease(
    server.listen(listener, port, host, undefined, true),
    () =>
      Effect.andThen(
        Effect.timeoutOption(close, flushTimeout),
        Effect.sync(() => {
          for (const socket of sockets.keys()) socket.destroy()
        })
      )
  )
  return { host, port: own }
})

/** The transport of a node, and a function that makes it listen until the scope closes. */
export interface Opened {
  readonly transport: NodeTransport
  readonly listen: Effect.Effect<void, TransportError, Scope.Scope>
}

/**
 * Opens the transport of a node of a fleet. `silence` is the time after which an answer without any byte is given up, in
 * milliseconds.
 */
export const open = Effect.fnUntraced(function*({ fleet, requests, services, silence }: {
  readonly fleet: Fleet
  readonly requests: NodeRequests
  readonly services: Context.Context<never>
  readonly silence: number | undefined
}): Effect.fn.Return<Opened, TransportError> {
  const clock = Context.get(services, Clock.Clock)
  const addresses = new Addresses(fleet)
  const { advertisedHost, host = "127.0.0.1", keys, port = 0, tlsFolder, tlsName } = requests
  const certificates = tlsFolder === undefined ? undefined : yield* NodeCertificates.load(tlsFolder, tlsName)
  const parts: Parts = {
    node: fleet.node,
    addresses,
    secrets: keys?.map(bytesOf),
    certificates,
    run: Effect.runForkWith(services),
    now: () => clock.currentTimeMillisUnsafe(),
    silence
  }
  const connections = new Connections(parts)
  const transport: NodeTransport = {
    node: fleet.node,
    canReach: (node) => addresses.canReach(node),
    hasGone: (node) => Effect.orElseSucceed(fleet.hasGone(node), () => false),
    send: makeSend(parts, connections),
    handle: undefined
  }
  return {
    transport,
    listen: Effect.gen(function*() {
      yield* Effect.addFinalizer(() => Effect.sync(() => connections.close()))
      if (certificates !== undefined) yield* Effect.forkScoped(certificates.watch)
      const own = yield* listen(parts, { host, port }, (request, answer) => transport.handle?.(request, answer))
      yield* fleet.receive(addresses)
      addresses.announce({ host: advertisedHost ?? host, port: own.port })
    })
  }
})
