/**
 * The requests whose session this node does not have, until it is found.
 */
import * as Header from "@skein/protocol/Header"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { constFalse } from "effect/Function"
import type { FleetError, Message, Service as Fleet, SessionRecord } from "../../../Fleet.ts"
import { clientOf } from "../../base/client.ts"
import { SimpleClaim } from "../limits/load.ts"
import { memoryOf } from "../limits/memory.ts"
import type { HttpAnswer, HttpRequest } from "../messages/adapter.ts"
import { busy, closing, type HttpRefusal, invalid, tooManyRequests } from "../messages/refusals.ts"
import type { EndpointContext } from "./context.ts"

// The same answer for a session that never existed, that has ended, or that belongs to another principal.
export const notFound = invalid(404, "Not Found: there is no such session")
export const unavailable = busy("Service Unavailable: the records of the sessions cannot be read or written now")

/** The sessions of the endpoint. */
export interface LookupTable {
  readonly endpoint: EndpointContext
  readonly open: ReadonlyMap<string, { readonly principalId: string | undefined }>
  readonly fork: (effect: Effect.Effect<unknown>) => void
}

/** The requests of a principal that wait until a session is found, and the messages about it that arrive meanwhile. */
interface Lookup {
  readonly principalId: string | undefined
  readonly waiting: Array<(refused: HttpRefusal | undefined) => void>
  readonly messages: Array<SessionMessage>
  /** Whether messages were lost: the record that is found may be old. */
  hasGap: boolean
}

/** A message about a session. */
export type SessionMessage = Extract<Message, { readonly id: string }>

/** Whether a message matters to a request that waits for the session. */
const isKept = ({ _tag }: SessionMessage): boolean => _tag === "Ended" || _tag === "Changed" || _tag === "Received"

/** Runs an operation of the fleet, and logs its failure. */
export const runOperation = <A>(
  table: Pick<LookupTable, "fork">,
  what: string,
  operation: Effect.Effect<A, FleetError>,
  then: (exit: Exit.Exit<A, FleetError>) => void
): void => {
  const logged = Effect.onExit(operation, (exit) =>
    Effect.suspend(() => {
      then(exit)
      return Exit.isFailure(exit) ? Effect.logWarning(`failed to ${what}`, exit.cause) : Effect.void
    }))
  table.fork(Effect.ignore(logged))
}

export class SessionLookups {
  readonly #fleet: Fleet
  readonly #table: LookupTable
  readonly #found: (record: SessionRecord | undefined, request: HttpRequest) => HttpRefusal | undefined
  readonly #deliver: (message: Message) => void
  // By the id of the session. Each principal has its own: the answer to one says nothing to another.
  readonly #lookups = new Map<string, Array<Lookup>>()

  /** `found` restores a session, or returns why it cannot; `deliver` handles a message about it. */
  constructor(
    fleet: Fleet,
    table: LookupTable,
    found: (record: SessionRecord | undefined, request: HttpRequest) => HttpRefusal | undefined,
    deliver: (message: Message) => void
  ) {
    this.#fleet = fleet
    this.#table = table
    this.#found = found
    this.#deliver = deliver
  }

  /** How many sessions are looked up. */
  get size(): number {
    return this.#lookups.size
  }

  /**
   * Whether another node may have opened the session of a request. The session of another principal is looked up, too:
   * the time of the answer does not tell whether this node has it.
   */
  mustFind(request: HttpRequest): boolean {
    const id = request.header(Header.keys.sessionId)
    if (id === undefined || id === "") return false
    const session = this.#table.open.get(id)
    return (session === undefined || session.principalId !== request.principal?.id) && this.#fleet.isKnown(id)
  }

  /** Finds the session of a request, and restores it here. `refuse` is called if that is not possible. */
  find(request: HttpRequest, message: JsonRpc.Inbound | undefined, answer: HttpAnswer, then: () => void): void {
    const { endpoint } = this.#table
    const refuse = (refused: HttpRefusal) =>
      endpoint.refuse(answer, refused, message?._tag === "Request" ? message.id : undefined)
    // Another node can serve it: the client must not take its session for lost.
    if (endpoint.isClosing) return refuse(closing)
    const client = clientOf(request)
    const { load, options: { bounds, maxInFlightRequests } } = endpoint
    if (load.requests >= maxInFlightRequests && !load.makeRoomFor("requests", client)) return refuse(tooManyRequests)
    const id = request.header(Header.keys.sessionId)!
    const principalId = request.principal?.id
    const lookups = this.#lookups.get(id) ?? []
    const known = lookups.find((lookup) => lookup.principalId === principalId)
    const lookup = known ?? { principalId, waiting: [], messages: [], hasGap: false }
    const settle = (refused: HttpRefusal | undefined): void => {
      load.remove(claim)
      // A client that has left receives nothing, and its messages count.
      if (answer.isClosed && (refused !== undefined || request.method === "GET")) return
      if (refused !== undefined) refuse(refused)
      else then()
    }
    const claim = new SimpleClaim("requests", constFalse, () => {
      const index = lookup.waiting.indexOf(settle)
      if (index >= 0) lookup.waiting.splice(index, 1)
      settle(tooManyRequests)
    })
    load.add(claim, client, memoryOf(message))
    lookup.waiting.push(settle)
    if (known !== undefined) return
    this.#lookups.set(id, [...lookups, lookup])
    runOperation(this.#table, "find a session", this.#fleet.find(id, principalId), (exit) => {
      const others = this.#lookups.get(id)!.filter((other) => other !== lookup)
      if (others.length === 0) this.#lookups.delete(id)
      else this.#lookups.set(id, others)
      const { hasGap, messages, waiting } = lookup
      const isOld = hasGap || messages.length > bounds.maxPendingMessages
      const refused = Exit.isFailure(exit) || isOld ? unavailable : this.#found(exit.value, request)
      const isMessage = ({ _tag }: SessionMessage) => _tag === "Received"
      if (refused === undefined) { for (const change of messages) if (!isMessage(change)) this.#deliver(change) }
      for (let settle = waiting.shift(); settle !== undefined; settle = waiting.shift()) settle(refused)
      // A request that has waited can be cancelled.
      if (refused === undefined) { for (const received of messages) if (isMessage(received)) this.#deliver(received) }
    })
  }

  /** A message about a session has arrived. The record that is being read may be older. */
  received(message: SessionMessage): void {
    const { maxPendingMessages } = this.#table.endpoint.options.bounds
    for (const { messages } of this.#lookups.get(message.id) ?? []) {
      if (messages.length <= maxPendingMessages && isKept(message)) messages.push(message)
    }
  }

  /** Messages were lost. */
  gap(): void {
    for (const lookups of this.#lookups.values()) for (const lookup of lookups) lookup.hasGap = true
  }
}
