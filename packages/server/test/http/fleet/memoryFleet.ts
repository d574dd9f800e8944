/**
 * A fleet whose nodes are servers of one process: the test bed of the protocol between nodes, without a database.
 *
 * Everything between two nodes takes a while, and arrives in order. The echo of a change is awaited, as with a database:
 * a change is done when every running node has received it, the one that made it included, or after a second.
 */
import * as RandomId from "@skein/runtime/RandomId"
import * as EventBus from "@skein/server/EventBus"
import * as EventStore from "@skein/server/EventStore"
import * as Fleet from "@skein/server/Fleet"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { SessionRecords } from "../../../src/internal/http/workers/sessionRecords.ts"

/** A message to a node. */
interface Delivery {
  readonly at: number
  readonly run: () => void
}

interface Node {
  readonly receivers: Set<Fleet.Receiver>
  readonly changes: Set<(change: EventBus.Change) => void>
  isServing: boolean
  /** Whether messages to and from it are lost, as when its connection to the database is cut. */
  isCut: boolean
  /** Closed while messages to it and its events wait, as when its connection is slow. */
  readonly flow: Latch.Latch
  readonly waitingEvents: Array<() => void>
  /** The nodes that it has not heard of yet: their first messages are on their way. */
  readonly unheard: Set<number>
}

const pause = (milliseconds: number): Effect.Effect<void> =>
  milliseconds > 0 ? Effect.sleep(milliseconds) : Effect.yieldNow

export class MemoryFleet {
  readonly records = new SessionRecords()
  readonly nodes = new Map<number, Node>()
  /** How often each operation ran, and each kind of message was sent. */
  readonly counts: { [what: string]: number } = {}
  readonly events = EventStore.make()
  /** Where the nodes listen for each other. */
  readonly addresses = new Map<number, Fleet.NodeAddress>()
  // The streams whose events a node could not store, by their session.
  readonly #lost = new Map<string, Set<number>>()
  /** Returns the milliseconds that the next message takes. */
  delay: () => number
  /** Whether operations fail, as while the database is down. */
  isDown = false
  #last = 0

  constructor(delay: () => number = () => 0) {
    this.delay = delay
  }

  #count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1
  }

  /** The services of a new node: the fleet, and the event bus for its server. Nodes may share the event store. */
  node(): Effect.Effect<
    { readonly node: number; readonly layer: Layer.Layer<Fleet.Fleet | EventBus.EventBus> },
    never,
    Scope.Scope
  > {
    return Effect.gen({ self: this }, function*() {
      const node = ++this.#last
      const own: Node = {
        receivers: new Set(),
        changes: new Set(),
        isServing: true,
        isCut: false,
        flow: Latch.makeUnsafe(true),
        waitingEvents: [],
        unheard: new Set()
      }
      this.nodes.set(node, own)
      const clock = this.#clock = yield* Clock.Clock
      const inbox = yield* Queue.unbounded<Delivery>()
      yield* Effect.forkScoped(
        Effect.forever(
          Effect.flatMap(
            Queue.take(inbox),
            ({ at, run }) =>
              Effect.andThen(
                pause(at - clock.currentTimeMillisUnsafe()),
                Effect.andThen(own.flow.await, Effect.sync(run))
              )
          )
        )
      )
      this.#inboxes.set(node, inbox)
      const wait = Effect.suspend(() => pause(this.delay()))
      const operation = <A>(what: string, run: () => A): Effect.Effect<A, Fleet.FleetError> =>
        Effect.gen({ self: this }, function*() {
          this.#count(what)
          yield* wait
          if (this.isDown || own.isCut) return yield* new Fleet.FleetError({ message: "the database is down" })
          const result = run()
          yield* wait
          return result
        })
      /**
       * Changes the records, and sends the message to all nodes at once, so that all receive it in the same order. Returns
       * whether all running nodes have received it.
       */
      const stored = (
        what: string,
        run: () => void,
        message: Fleet.Message
      ): Effect.Effect<boolean, Fleet.FleetError> =>
        Effect.flatMap(
          operation(what, () => {
            run()
            return Array.from(this.nodes.keys(), (other) => {
              const done = Deferred.makeUnsafe<boolean>()
              const isReceived = () => this.nodes.get(other)?.isCut === false || !fleet.isServing(other)
              this.#deliver(
                other,
                (receiver) => receiver.message(message),
                () => Deferred.doneUnsafe(done, Effect.sync(isReceived))
              )
              return Deferred.await(done)
            })
          }),
          (received) =>
            Effect.map(
              Effect.timeoutOption(Effect.all(received), 1_000),
              (all) => Option.isSome(all) && !all.value.includes(false)
            )
        )
      const fleet: Fleet.Service = {
        node,
        newId: () => `${node}.${RandomId.make(22)}`,
        isKnown: (id) => /^\d+\.\w{22}$/.test(id),
        isServing: (other) => this.nodes.get(other)?.isServing === true && !own.unheard.has(other),
        hasGone: (other) =>
          fleet.isServing(other)
            ? Effect.succeed(false)
            : operation("hasGone", () => this.nodes.get(other)?.isServing !== true),
        create: (record, bounds, client) =>
          operation("create", () => {
            const copy = structuredClone(record)
            const all = { ...bounds, maxSessions: bounds.maxSessions * this.nodes.size }
            return this.records.create(copy, all, client, clock.currentTimeMillisUnsafe()).isCreated
          }),
        find: (id, principalId) =>
          operation("find", () => structuredClone(this.records.find(id, principalId, clock.currentTimeMillisUnsafe()))),
        change: (id, change) =>
          stored("change", () => this.records.change(id, change), { _tag: "Changed", id, change }),
        end: (id) => Effect.asVoid(stored("end", () => this.records.end(id), { _tag: "Ended", id })),
        touch: (id) => this.records.touch(id, clock.currentTimeMillisUnsafe()),
        broadcast: (message) => {
          this.#count(`broadcast ${message._tag}`)
          if (message._tag === "Address") this.addresses.set(node, message.address)
          if (own.isCut) return
          for (const [other, { unheard }] of this.nodes) {
            if (other !== node && !unheard.has(node)) this.#deliver(other, (receiver) => receiver.message(message))
          }
        },
        send: (to, message) => {
          this.#count(`send ${message._tag}`)
          if (!own.isCut) this.#deliver(to, (receiver) => receiver.message(message))
        },
        receive: (receiver) =>
          Effect.acquireRelease(
            Effect.sync(() => void own.receivers.add(receiver)),
            () => Effect.sync(() => void own.receivers.delete(receiver))
          )
      }
      const bus: EventBus.EventBus["Service"] = {
        publish: (change) =>
          Effect.sync(() => {
            if (own.isCut) return
            for (const [other, { changes }] of this.nodes) {
              this.#later(other, () => changes.forEach((onChange) => onChange(change)))
            }
          }),
        subscribe: (onChange) =>
          Effect.acquireRelease(
            Effect.sync(() => void own.changes.add(onChange)),
            () => Effect.sync(() => void own.changes.delete(onChange))
          )
      }
      return { node, layer: Layer.mergeAll(Layer.succeed(Fleet.Fleet, fleet), Layer.succeed(EventBus.EventBus, bus)) }
    })
  }

  /** Whether events of a session are lost, because a node could not store them. */
  hasLost(session: string): boolean {
    return this.#lost.has(session)
  }

  /** The shared events, as a node stores and reads them. */
  eventsOf(node: number): EventStore.Store {
    const { events } = this
    const isCut = () => this.nodes.get(node)?.isCut === true
    const isLost = (session: string, stream: number) => this.#lost.get(session)?.has(stream) === true
    return {
      append: (session, stream, event, data, client) => {
        const append = () => events.append(session, stream, event, data, client)
        if (this.nodes.get(node)?.flow.isOpen() === false) this.nodes.get(node)!.waitingEvents.push(append)
        else if (isCut()) this.#lost.set(session, (this.#lost.get(session) ?? new Set()).add(stream))
        else if (!isLost(session, stream)) append()
      },
      complete: (session, stream, client) => events.complete(session, stream, client),
      forget: (session) => events.forget(session),
      read: (session, stream, after) =>
        Effect.suspend(() =>
          isCut() || isLost(session, stream) ? Effect.undefined : events.read(session, stream, after)
        ),
      get size() {
        return events.size ?? 0
      },
      trim: (maxChars) => events.trim?.(maxChars)
    }
  }

  /** Gives the other nodes another address of a node, and waits until they have it. */
  readdress(node: number, address: Fleet.NodeAddress): Effect.Effect<void> {
    return Effect.callback((resume) => {
      const others = Array.from(this.nodes.keys()).filter((other) => other !== node)
      let left = others.length
      for (const other of others) {
        this.#deliver(
          other,
          (receiver) => receiver.message({ _tag: "Address", node, address, isAnswer: true }),
          () => --left === 0 && resume(Effect.void)
        )
      }
    })
  }

  /** A node has gone: the others know it at once. */
  stop(node: number): void {
    const one = this.nodes.get(node)
    if (one !== undefined) one.isServing = false
  }

  /** The connection of a node is cut, or is back: it has missed messages. */
  cut(node: number, isCut: boolean): void {
    const one = this.nodes.get(node)!
    one.isCut = isCut
    if (!isCut) { for (const receiver of one.receivers) receiver.gap() }
  }

  /** Messages to a node and its events wait, or go on. */
  delayAll(node: number, isWaiting: boolean): void {
    const { flow, waitingEvents } = this.nodes.get(node)!
    if (isWaiting) return void flow.closeUnsafe()
    for (const append of waitingEvents.splice(0)) append()
    flow.openUnsafe()
  }

  #clock: Clock.Clock | undefined = undefined
  readonly #inboxes = new Map<number, Queue.Queue<Delivery>>()

  #deliver(node: number, run: (receiver: Fleet.Receiver) => void, done: () => void = () => {}): void {
    const one = this.nodes.get(node)
    this.#later(node, () => {
      if (one?.isCut === false) one.receivers.forEach(run)
      done()
    })
  }

  #later(node: number, run: () => void): void {
    const inbox = this.#inboxes.get(node)
    if (inbox !== undefined) {
      Queue.offerUnsafe(inbox, { at: this.#clock!.currentTimeMillisUnsafe() + this.delay(), run })
    }
  }
}
