/**
 * The requests of clients that another node of the fleet handles: this node passes each on, and its answer back.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Principal } from "@skein/runtime/Connection"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { constVoid } from "effect/Function"
import * as Latch from "effect/Latch"
import { clientOf } from "../../base/client.ts"
import { credentialHeaders, WithheldRequest, withholds } from "../access/protection.ts"
import { type Claim, SimpleClaim } from "../limits/load.ts"
import type { Headers, HttpAnswer, HttpRequest } from "../messages/adapter.ts"
import { busy, closing, idOf, interrupted, json, tooManyRequests, tooManyStreams } from "../messages/refusals.ts"
import type { EndpointContext } from "./context.ts"

/** A request of a client, as it travels between nodes. Its body travels beside it. */
export interface PassedHead {
  readonly method: string
  readonly path: string
  readonly query?: string | undefined
  readonly headers: Headers
  readonly principal?: Principal | undefined
  readonly address?: string | undefined
}

/** Receives the answer of another node. */
export interface PassedAnswer {
  /** The head has arrived. Returns whether the rest is wanted. */
  readonly begin: (status: number, headers: Headers) => boolean
  /** A part has arrived. Returns an effect that succeeds when the next one is wanted, if that is later. */
  readonly part: (text: string) => Effect.Effect<void> | undefined
  readonly end: () => void
  /** The answer is missing or incomplete. `isSent` if the node may have received the request. */
  readonly fail: (isSent: boolean) => void
}

/** Sends requests to the other nodes of a fleet, and receives theirs. */
export interface NodeTransport {
  /** The number of this node. */
  readonly node: number
  /** Whether the address of a node is known, or is on its way. */
  readonly canReach: (node: number) => boolean
  /** Whether a node has gone. One that joined a moment ago may not be reachable yet. */
  readonly hasGone: (node: number) => Effect.Effect<boolean>
  /** Sends a request. Returns a function that gives it up. */
  readonly send: (node: number, head: PassedHead, body: string | undefined, answer: PassedAnswer) => () => void
  /** Handles the requests of other nodes. */
  handle: ((request: HttpRequest, answer: HttpAnswer) => void) | undefined
}

/** The transport of an endpoint. Without it the endpoint passes no requests on. */
export class Transport extends Context.Service<Transport, NodeTransport>()("@skein/server/internal/NodeTransport") {}

const unreachable = busy("Service Unavailable: the node that has this session cannot be reached now")

/** The ids of the requests in a message. */
const requestIds = (message: JsonRpc.Inbound | undefined): ReadonlyArray<JsonRpc.Id> => {
  const members = message?._tag === "Batch" ? message.members : message === undefined ? [] : [message]
  return members.flatMap((member) => member._tag === "Request" ? [member.id] : [])
}

// They belong to the connection of the client, or are written again for it.
const ofConnection = new Set([
  "connection",
  "content-length",
  "date",
  "expect",
  "keep-alive",
  "transfer-encoding",
  "upgrade"
])

const withoutConnection = (headers: Headers): Headers =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !ofConnection.has(name)))

/** A request to pass on. */
export interface Passed {
  readonly node: number
  readonly request: HttpRequest
  readonly answer: HttpAnswer
  /** The body, and the message in it; undefined for GET and DELETE. */
  readonly body?: { readonly text: string; readonly message: JsonRpc.Inbound } | undefined
  /** Called instead of an answer if the node cannot be reached, or with a status that `isRefused`. Nothing was sent. */
  readonly otherwise: (status?: number) => void
  readonly isRefused?: ((status: number) => boolean) | undefined
}

export class NodeRequests {
  readonly transport: NodeTransport
  readonly #endpoint: EndpointContext
  readonly #fork: (effect: Effect.Effect<void>) => void
  readonly #withheld: ReadonlySet<string>
  /** The requests that are not answered yet, and how each ends when the endpoint closes. */
  readonly #active = new Map<Claim, () => void>()
  readonly #idle = Latch.makeUnsafe(true)

  constructor(transport: NodeTransport, endpoint: EndpointContext, fork: (effect: Effect.Effect<void>) => void) {
    this.transport = transport
    this.#endpoint = endpoint
    this.#fork = fork
    this.#withheld = credentialHeaders(endpoint.options)
  }

  /** Makes the id of a session that lives at this node. */
  idOf(random: string): string {
    return `${this.transport.node}.${random}`
  }

  /** The other node that has a session, by an id of {@link idOf}. A request that was passed on once stays. */
  nodeOf(id: string | null | undefined, request: HttpRequest): number | undefined {
    const found = request.isPassed === true ? null : /^([1-9]\d{0,6})\.[A-Za-z0-9]{22}$/.exec(id ?? "")
    const node = found === null ? this.transport.node : Number(found[1])
    return node === this.transport.node ? undefined : node
  }

  /** Whether a request may be passed on to a node. */
  mayPass(node: number, request: HttpRequest): boolean {
    return request.isPassed !== true && node !== this.transport.node
  }

  /** Passes a request on to the node that has its session. Without that node the session is gone. */
  passToSession(node: number, { answer, body, request }: Omit<Passed, "node" | "otherwise">, gone: () => void): void {
    const unreached = (): void => this.#endpoint.refuse(answer, unreachable, body && idOf(body.message))
    const otherwise = (): void => this.#unlessGone(node, unreached, gone)
    this.pass({ node, request, answer, body, otherwise }, gone)
  }

  /** Passes a request on, unless the node has gone. */
  pass(passed: Passed, gone: () => void = passed.otherwise): void {
    if (this.transport.canReach(passed.node)) this.#pass(passed)
    else this.#unlessGone(passed.node, () => this.#pass(passed), gone)
  }

  #unlessGone(node: number, otherwise: () => void, gone: () => void): void {
    this.#fork(Effect.map(this.transport.hasGone(node), (hasGone) => hasGone ? gone() : otherwise()))
  }

  #pass({ answer, body, isRefused, node, otherwise, request }: Passed): void {
    const { isClosing, load, options: { maxInFlightRequests, maxStreams }, refuse } = this.#endpoint
    const id = body && idOf(body.message)
    const isStream = request.method === "GET"
    if (isStream && answer.isClosed) return
    if (isClosing && isStream) return refuse(answer, closing)
    const client = clientOf(request)
    const kind = isStream ? "streams" : "requests"
    if (load[kind] >= (isStream ? maxStreams : maxInFlightRequests) && !load.makeRoomFor(kind, client)) {
      return refuse(answer, isStream ? tooManyStreams : tooManyRequests, id)
    }
    let reply: { readonly status: number; readonly headers: Headers; text: string } | undefined
    let hasBegun = false
    let isOver = false
    let abort: () => void = constVoid
    const end = (answered: () => void): void => {
      if (isOver) return
      isOver = true
      load.remove(claim)
      this.#active.delete(claim)
      if (this.#active.size === 0) this.#idle.openUnsafe()
      answered()
    }
    // The other node may have handled the request. The client can resume a stream that has begun.
    const lost = (): void => {
      if (hasBegun) return answer.abort()
      const failures = requestIds(body?.message).map((id) => JsonRpc.failure(id, interrupted))
      if (failures.length === 0) return refuse(answer, unreachable)
      const [failure] = failures
      const isBatch = body?.message._tag === "Batch"
      answer.reply(200, json, JsonRpc.encode(isBatch ? { _tag: "Batch", members: failures } : failure!))
    }
    const giveUp = (): void =>
      end(() => {
        abort()
        lost()
      })
    const claim = new SimpleClaim(kind, () => isStream, giveUp)
    load.add(claim, client, body?.text.length ?? 0)
    if (claim.share === undefined) return
    const endStream = (): void =>
      end(() => {
        abort()
        if (hasBegun) answer.end()
        else refuse(answer, closing)
      })
    this.#active.set(claim, isStream ? endStream : giveUp)
    this.#idle.closeUnsafe()
    const shown = withholds(this.#endpoint.options, request.principal)
      ? new WithheldRequest(request, this.#withheld)
      : request
    const head: PassedHead = {
      method: request.method,
      path: request.path,
      query: request.query,
      headers: withoutConnection(shown.headers ?? {}),
      principal: request.principal,
      address: request.address
    }
    abort = this.transport.send(node, head, body?.text, {
      begin: (status, given) => {
        if (isOver) return false
        if (isRefused?.(status) === true) {
          end(() => otherwise(status))
          return false
        }
        const headers = withoutConnection(given)
        if (headers["content-type"] !== "text/event-stream") reply = { status, headers, text: "" }
        else {
          hasBegun = true
          answer.open(status, headers)
        }
        return true
      },
      part: (text) => {
        if (reply === undefined) return answer.write(text) ? undefined : answer.drained
        reply.text += text
        load.charge(claim, text.length)
        return undefined
      },
      end: () =>
        end(() => {
          if (reply === undefined) answer.end()
          else answer.reply(reply.status, reply.headers, reply.text)
        }),
      // A GET that was sent can be sent again.
      fail: (isSent) => end(hasBegun || (isSent && !isStream) ? lost : otherwise)
    })
    answer.onClose(() => end(abort))
  }

  /** How many requests are passed on. */
  get size(): number {
    return this.#active.size
  }

  /** Ends the streams: their clients can open them at another node. Succeeds when the other requests are answered. */
  readonly drained: Effect.Effect<void> = Effect.suspend(() => {
    for (const [claim, end] of Array.from(this.#active)) if (claim.kind === "streams") end()
    return this.#idle.await
  })

  /** Gives up all requests. */
  readonly close: Effect.Effect<void> = Effect.sync(() => {
    for (const end of Array.from(this.#active.values())) end()
  })
}
