/** The contract of `Fleet` and `EventBus`, for each database. */
import { expect, it } from "@effect/vitest"
import type { EventBus } from "@skein/server/EventBus"
import type { Fleet, FleetError, Message } from "@skein/server/Fleet"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { bounds, type Node, open, record, start, until, untilEffect } from "./kit.ts"

/** A fleet of its own for one test: each layer that is built is a node of it. */
export type MakeFleet = () => Effect.Effect<Layer.Layer<Fleet | EventBus, FleetError>>

const received = ({ arrived }: Node, tag: string): ReadonlyArray<Message> =>
  arrived.filter(({ _tag }) => _tag === tag) as ReadonlyArray<Message>

export const contract = (makeFleet: MakeFleet): void => {
  const nodes = (count: number) =>
    Effect.gen(function*() {
      const layer = yield* makeFleet()
      const all: Array<Node> = []
      for (let n = 0; n < count; n++) all.push(yield* start(layer))
      return all as [Node, Node, Node]
    })

  it.live("gives each node a number, and knows which nodes run", () =>
    Effect.gen(function*() {
      const [a, b, c] = yield* nodes(3)
      const numbers = [a, b, c].map(({ fleet }) => fleet.node)
      expect(new Set(numbers).size).toBe(3)
      const knowsAll = () => [a, b, c].every(({ fleet }) => numbers.every((number) => fleet.isServing(number)))
      yield* until("all nodes know each other", knowsAll)
      expect(a.fleet.isServing(Math.max(...numbers) + 1)).toBe(false)
      expect(yield* a.fleet.hasGone(Math.max(...numbers) + 1)).toBe(true)
      yield* c.close
      yield* until("the others know that a node has left", () => !a.fleet.isServing(numbers[2]!))
      expect(yield* Effect.forEach(numbers, (number) => a.fleet.hasGone(number))).toEqual([false, false, true])
      expect(a.fleet.isServing(numbers[1]!)).toBe(true)
    }).pipe(Effect.scoped))

  it.live("knows the ids that a node has made, and no others", () =>
    Effect.gen(function*() {
      const [a, b] = yield* nodes(2)
      const id = a.fleet.newId()
      expect(id).not.toBe(a.fleet.newId())
      expect(b.fleet.isKnown(id)).toBe(true)
      const others = ["", "1", `${id}0`, id.slice(1), id.replace(/.$/, (last) => last === "0" ? "1" : "0")]
      expect(others.filter((other) => b.fleet.isKnown(other))).toEqual([])
      const [stranger] = yield* nodes(1)
      expect(stranger.fleet.isKnown(id)).toBe(false)
    }).pipe(Effect.scoped))

  it.live("finds the session of a principal at another node, and no session of another principal", () =>
    Effect.gen(function*() {
      const [a, b] = yield* nodes(2)
      const session = yield* open(a, "alice")
      const anonymous = yield* open(a)
      expect(yield* b.fleet.find(session.id, "alice")).toEqual(session)
      expect(yield* b.fleet.find(session.id, "bob")).toBeUndefined()
      expect(yield* b.fleet.find(session.id, undefined)).toBeUndefined()
      expect(yield* b.fleet.find(anonymous.id, undefined)).toEqual(anonymous)
      expect(yield* b.fleet.find(anonymous.id, "")).toBeUndefined()
      expect(yield* b.fleet.find(a.fleet.newId(), "alice")).toBeUndefined()
      const [stranger] = yield* nodes(1)
      expect(yield* stranger.fleet.find(session.id, "alice")).toBeUndefined()
    }).pipe(Effect.scoped))

  it.live("stores a change, and succeeds when all nodes that have the session have received it", () =>
    Effect.gen(function*() {
      const all = yield* nodes(3)
      const { id } = yield* open(all[0])
      for (const { fleet } of all) yield* fleet.find(id, undefined)
      const odd = "test://\0\ud800/é😀"
      const changes = [
        { isInitialized: true as const },
        { logLevel: "debug" },
        { subscribe: "test://a" },
        { subscribe: odd },
        { subscribe: odd },
        { subscribe: "test://b" },
        { unsubscribe: "test://a" },
        { listensAt: all[1].fleet.node, listenedAt: all[0].fleet.node }
      ]
      for (const [index, change] of changes.entries()) {
        const sender = all[index % 3]!
        yield* sender.fleet.change(id, change)
        for (const { arrived, fleet } of all) {
          // A node need not receive its own `isInitialized`.
          if (change.isInitialized === true && fleet === sender.fleet) expect(arrived).toHaveLength(0)
          else expect(arrived.at(-1)).toEqual({ _tag: "Changed", id, change })
        }
      }
      expect(yield* all[2].fleet.find(id, undefined)).toMatchObject({
        isInitialized: true,
        logLevel: "debug",
        subscriptions: [odd, "test://b"],
        listensAt: all[1].fleet.node
      })
      expect(all.map(({ arrived }) => arrived.length)).toEqual([changes.length - 1, changes.length, changes.length])
    }).pipe(Effect.scoped))

  it.live("ends a session, and succeeds when no node finds it", () =>
    Effect.gen(function*() {
      const all = yield* nodes(3)
      const { id } = yield* open(all[0], "alice")
      for (const { fleet } of all) yield* fleet.find(id, "alice")
      yield* all[1].fleet.end(id)
      for (const { arrived, fleet } of all) {
        expect(arrived.at(-1)).toEqual({ _tag: "Ended", id })
        expect(yield* fleet.find(id, "alice")).toBeUndefined()
      }
      yield* all[0].fleet.end(id)
    }).pipe(Effect.scoped))

  it.live("delivers concurrent changes of a session in one order, that of the record", () =>
    Effect.gen(function*() {
      const all = yield* nodes(3)
      const { id } = yield* open(all[0])
      for (const { fleet } of all) yield* fleet.find(id, undefined)
      yield* Effect.forEach(
        Array.from({ length: 30 }, (_, n) => n),
        (n) => all[n % 3]!.fleet.change(id, { logLevel: `level ${n}` }),
        { concurrency: "unbounded" }
      )
      const [first, ...others] = all.map(({ arrived }) => arrived.map((message) => JSON.stringify(message)))
      expect(first).toHaveLength(30)
      for (const other of others) expect(other).toEqual(first)
      const { logLevel } = (yield* all[0].fleet.find(id, undefined))!
      expect(first!.at(-1)).toContain(`"${logLevel}"`)
    }).pipe(Effect.scoped))

  it.live("delivers a published change before a later change of a session", () =>
    Effect.gen(function*() {
      const all = yield* nodes(3)
      const { id } = yield* open(all[0])
      for (const { fleet } of all) yield* fleet.find(id, undefined)
      const expected: Array<unknown> = []
      for (let n = 0; n < 10; n++) {
        const published = { _tag: "Resource", uri: `test://${n}${"x".repeat(n % 3 === 0 ? 10_000 : 0)}` } as const
        const change = { logLevel: `${n}` }
        yield* all[n % 3]!.bus.publish(published)
        yield* all[(n + 1) % 3]!.fleet.change(id, change)
        expected.push(published, { _tag: "Changed", id, change })
        for (const { arrived } of all) expect(arrived).toEqual(expected)
      }
    }).pipe(Effect.scoped))

  it.live("delivers messages to one node or to all others, each once and in order, whatever their length", () =>
    Effect.gen(function*() {
      const [a, b, c] = yield* nodes(3)
      yield* until("a node knows another one", () => a.fleet.isServing(b.fleet.node))
      const texts = Array.from({ length: 60 }, (_, n) => n % 7 === 0 ? `${n} \0\ud800 ${"é".repeat(9_000)}` : "same")
      for (const text of texts) a.fleet.send(b.fleet.node, { _tag: "Received", id: "x", text })
      for (const text of texts) a.fleet.broadcast({ _tag: "Outgoing", id: "x", text, from: a.fleet.node })
      const textsOf = (node: Node, tag: string) =>
        received(node, tag).map((message) => "text" in message ? message.text : "")
      yield* until(
        "all messages have arrived",
        () => received(b, "Received").length >= 60 && [b, c].every((node) => received(node, "Outgoing").length >= 60)
      )
      expect(textsOf(b, "Received")).toEqual(texts)
      expect(textsOf(b, "Outgoing")).toEqual(texts)
      expect(textsOf(c, "Outgoing")).toEqual(texts)
      expect(c.arrived).toHaveLength(60)
      expect(a.arrived).toHaveLength(0)
    }).pipe(Effect.scoped))

  it.live("refuses a session above maxSessionsPerPrincipal, counted at all nodes", () =>
    Effect.gen(function*() {
      const all = yield* nodes(3)
      const few = { ...bounds, maxSessionsPerPrincipal: 5 }
      const create = (node: Node, principalId?: string) => {
        const session = record(node, principalId)
        return Effect.map(node.fleet.create(session, few, principalId ?? ""), (isCreated) =>
          isCreated ? session.id : undefined)
      }
      const each = <A, E>(run: (node: Node) => Effect.Effect<A, E>) =>
        Effect.forEach(
          Array.from({ length: 24 }, (_, n) =>
            all[n % 3]!),
          run,
          { concurrency: "unbounded" }
        )
      const created = (yield* each((node) => create(node, "alice"))).filter((id) => id !== undefined)
      expect(created).toHaveLength(5)
      expect(yield* create(all[0], "bob")).toBeDefined()
      expect((yield* each((node) => create(node))).every((id) => id !== undefined)).toBe(true)
      yield* all[1].fleet.end(created[0]!)
      expect(yield* create(all[2], "alice")).toBeDefined()
      expect(yield* create(all[0], "alice")).toBeUndefined()
    }).pipe(Effect.scoped))

  it.live("ends the oldest sessions of the client with the most, above maxSessions for each node", () =>
    Effect.gen(function*() {
      const [a, b] = yield* nodes(2)
      yield* until("a node knows another one", () => a.fleet.isServing(b.fleet.node) && b.fleet.isServing(a.fleet.node))
      const few = { ...bounds, maxSessions: 3 }
      const create = (node: Node, client: string) => {
        const session = record(node)
        return Effect.as(node.fleet.create(session, few, client), session.id)
      }
      const one = yield* create(a, "one")
      // The database orders them by milliseconds.
      const later = Effect.suspend(() => {
        const now = Date.now()
        return until("the next millisecond has begun", () => Date.now() > now + 1)
      })
      const many = yield* Effect.forEach(
        [a, b, a, b, a, b, a],
        (node) => Effect.andThen(later, create(node, "many"))
      )
      yield* until("two sessions have ended", () => [a, b].every((node) => received(node, "Ended").length === 2))
      for (const node of [a, b]) {
        expect(received(node, "Ended").map((message) => "id" in message ? message.id : "").sort()).toEqual(
          many.slice(0, 2).sort()
        )
      }
      expect(yield* b.fleet.find(one, undefined)).toBeDefined()
      expect(yield* b.fleet.find(many[0]!, undefined)).toBeUndefined()
      expect(yield* b.fleet.find(many[2]!, undefined)).toBeDefined()
    }).pipe(Effect.scoped))

  it.live("removes a record that was not used within idleTimeout", () =>
    Effect.gen(function*() {
      const [a, b] = yield* nodes(2)
      const one = { ...bounds, maxSessionsPerPrincipal: 1, idleTimeout: 15_000 }
      const create = (principalId: string) => {
        const session = record(a, principalId)
        return Effect.map(a.fleet.create(session, one, principalId), (isCreated) => isCreated ? session.id : undefined)
      }
      const used = (yield* create("alice"))!
      const unused = (yield* create("bob"))!
      yield* Effect.forkScoped(Effect.forever(Effect.delay(Effect.sync(() => b.fleet.touch(used)), 100)))
      // A look-up would be a use.
      yield* untilEffect("a session has expired", Effect.map(create("bob"), (id) => id !== undefined))
      expect(yield* b.fleet.find(unused, "bob")).toBeUndefined()
      expect(yield* b.fleet.find(used, "alice")).toBeDefined()
    }).pipe(Effect.scoped))
}
