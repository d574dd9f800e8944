/**
 * Two principals at the nodes of a fleet. One has a session with a stream, a question and a call in progress, and the other
 * sends their ids.
 */
import { describe, expect, it } from "@effect/vitest"
import * as Fleet from "@skein/server/Fleet"
import * as LegacySse from "@skein/server/LegacySse"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { type Json, open as openStream, posting, type Reply, send, type Stream } from "../kit.ts"
import { call, type Client, enter, notification, request, until } from "../session/kit.ts"
import { at, type Node, type Options, response, start, type TestFleet, textOf } from "./kit.ts"

const nodeRequests = { keys: ["a key of the fleet of the tests of 48 characters"] }

/** Where the sessions are. */
const places: Readonly<Record<string, Options>> = {
  "at every node": {},
  "at every node, and streams at one": { nodeRequests },
  "at the node that has opened them": { nodeRequests, sessions: "home" }
}

const secret = "a secret of ann"
const forgedProgress = 666

const userOf = (name: string) => ({ headers: { "x-user": name } })

/** A principal with a session, which all nodes have. */
interface User {
  readonly home: Node
  /** Its client at each node. */
  readonly clients: ReadonlyArray<Client>
  readonly listening: Stream
  readonly asked: Stream
  readonly question: Json
  readonly steps: Stream
  readonly stepsId: string
  /** The latest events of its streams. */
  readonly events: ReadonlyArray<string>
}

const enterAll = (nodes: ReadonlyArray<Node>, home: Node): Effect.Effect<User, never, Scope.Scope> =>
  Effect.gen(function*() {
    const own = yield* enter(home, "2025-11-25", userOf("ann"))
    const clients = nodes.map((node) => at(own, node))
    for (const client of clients) yield* client.post(call("greeting", "echo", { text: "" }))
    const listening = yield* own.get()
    yield* listening.next
    yield* own.post(call("announcing", "announce", { text: secret }))
    const announced = yield* listening.next
    const asked = yield* own.stream(call("asking", "ask"))
    yield* asked.next
    const question = yield* asked.next
    const stepsId = `steps ${own.id}`
    const steps = yield* own.stream(call(stepsId, "steps", { key: stepsId }))
    yield* steps.next
    const step = yield* steps.next
    const events = [announced.id!, question.id!, step.id!]
    return { home, clients, listening, asked, question: question.json, steps, stepsId, events }
  })

/** The parts of an answer that a client can compare. */
const shown = ({ headers, status, text }: Reply) => ({ status, headers: { ...headers, date: undefined }, text })

/** The answers to requests that name a session. */
const answers = (client: Client, session: string, user: string | undefined, event: string) =>
  Effect.map(
    Effect.all([
      ...[
        call(1, "echo", { text: "" }),
        request(2, "ping"),
        notification("notifications/test"),
        response(1, "forged")
      ].map((body) => client.post(body, { "mcp-session-id": session, "x-user": user })),
      client.read({ "mcp-session-id": session, "x-user": user }),
      client.read({ "mcp-session-id": session, "x-user": user, "last-event-id": event }),
      client.delete({ "mcp-session-id": session, "x-user": user })
    ]),
    (replies) => replies.map(shown)
  )

/** Another principal opens a session at a node, and sends every id of the victim. Returns all that arrives. */
const attack = (victim: User, node: Node) =>
  Effect.gen(function*() {
    const client = yield* enter(node, "2025-11-25", userOf("bob"))
    const { id, params } = victim.question
    const forged = [
      response(id, "forged"),
      { jsonrpc: "2.0", id, result: 1, error: 2 },
      notification("notifications/progress", { progressToken: params._meta.progressToken, progress: forgedProgress }),
      notification("notifications/cancelled", { requestId: victim.stepsId })
    ]
    const replies: Array<Reply> = []
    for (const body of forged) {
      replies.push(yield* client.post(body))
      for (const user of ["bob", undefined]) {
        const refused = yield* client.post(body, { "mcp-session-id": victim.clients[0]!.id, "x-user": user })
        expect(refused.status).toBe(404)
      }
    }
    const resumed = yield* Effect.forEach(victim.events, (event) => client.get({ "last-event-id": event }), {
      concurrency: "unbounded"
    })
    const streams = [...resumed, yield* client.get()]
    yield* client.post(call("marking", "announce", { text: "the mark" }))
    const arrived = () => streams.flatMap((stream) => stream.waiting())
    yield* until(() => arrived().some(({ json }) => json?.params?.text === "the mark"))
    yield* client.delete()
    return [...replies.map(({ text }) => text), ...arrived().map(({ data }) => data)].join("\n")
  })

/** Checks that the streams, the question and the call go on. `client` is that of the session at any node. */
const goOn = ({ asked, home, listening, question, steps, stepsId }: User, client: Client) =>
  Effect.gen(function*() {
    yield* client.post(call("announcing", "announce", { text: "announced" }))
    expect((yield* listening.message).params.text).toBe("announced")
    expect((yield* client.post(response(question.id, "answered"))).status).toBe(202)
    expect(textOf((yield* asked.next).json)).toBe("answered")
    const { control } = home
    control.open(stepsId)
    expect((yield* steps.message).params.progress).toBe(2)
    expect(textOf(yield* steps.message)).toBe(`${stepsId} done`)
    expect(control.interrupted).not.toContain(stepsId)
    expect(control.failures).not.toContain(forgedProgress)
    expect((yield* client.delete()).status).toBe(204)
  })

/** `fleet`, whose nodes record the sessions that they look up. */
const recording = (fleet: TestFleet, found: Array<string>): TestFleet => ({
  ...fleet,
  node: () =>
    Effect.map(fleet.node(), ({ layer, node }) => ({
      node,
      layer: Layer.effectContext(Effect.map(Layer.build(layer), (context) => {
        const service = Context.get(context, Fleet.Fleet)
        const find: Fleet.Service["find"] = (id, principalId) =>
          Effect.suspend(() => {
            found.push(id)
            return service.find(id, principalId)
          })
        return Context.add(context, Fleet.Fleet, { ...service, find })
      }))
    }))
})

/** `makeFleet` makes a fleet of its own for each test, whose nodes share the events of streams. */
export const principalTests = (makeFleet: Effect.Effect<TestFleet>): void => {
  for (const [place, options] of Object.entries(places)) {
    describe(`two principals with sessions ${place}`, () => {
      it.live("one gets and changes nothing with the ids of the other, at each pair of nodes", () =>
        Effect.gen(function*() {
          const nodes = yield* start(yield* makeFleet, 3, { sharesEvents: true, ...options })
          for (const home of nodes) {
            for (const node of nodes) {
              const victim = yield* enterAll(nodes, home)
              const arrived = yield* attack(victim, node)
              for (const own of [secret, victim.stepsId, "sampling/createMessage", "progress"]) {
                expect(arrived).not.toContain(own)
              }
              yield* goOn(victim, victim.clients[nodes.indexOf(node)]!)
            }
          }
        }).pipe(Effect.scoped))

      it.live("one gets the same answers for a session of the other as for one that does not exist, after the same lookups", () =>
        Effect.gen(function*() {
          const found: Array<string> = []
          const fleet = recording(yield* makeFleet, found)
          const nodes = yield* start(fleet, 3, { sharesEvents: true, ...options })
          for (const home of nodes) {
            const ann = yield* enter(home, "2025-11-25", userOf("ann"))
            const event = (yield* (yield* ann.get()).next).id!
            const bob = yield* enter(home, "2025-11-25", userOf("bob"))
            const gone = yield* enter(home, "2025-11-25", userOf("ann"))
            yield* gone.delete()
            const { id } = ann
            const last = id.at(-1) === "0" ? "1" : "0"
            for (const user of ["bob", undefined]) {
              for (const node of nodes) {
                const client = at(bob, node)
                const outcome = (session: string) =>
                  Effect.gen(function*() {
                    found.length = 0
                    const given = yield* answers(client, session, user, event)
                    return { given, lookups: found.filter((one) => one === session).length }
                  })
                const foreign = yield* outcome(id)
                expect(new Set(foreign.given.map(({ status }) => status))).toEqual(new Set([404]))
                expect(yield* outcome(gone.id)).toEqual(foreign)
                expect(foreign.lookups).toBe(options.sessions === "home" ? 0 : foreign.given.length)
                // An id that the fleet has not made costs nothing, and its answer is the same.
                const invented = yield* outcome(`${id.slice(0, -1)}${last}`)
                expect(invented.given).toEqual(foreign.given)
              }
            }
            for (const client of [ann, bob]) expect((yield* client.delete()).status).toBe(204)
          }
        }).pipe(Effect.scoped))
    })
  }

  it.live("two principals at each pair of nodes: one looks up its session while the other names it", () =>
    Effect.gen(function*() {
      const nodes = yield* start(yield* makeFleet, 3)
      for (const home of nodes) {
        for (const node of nodes) {
          const ann = at(yield* enter(home, "2025-11-25", userOf("ann")), node)
          const [first, own, second] = yield* Effect.all(
            ["bob", "ann", undefined].map((user) =>
              ann.post(call(user ?? "", "echo", { text: "" }), { "x-user": user })
            ),
            { concurrency: "unbounded" }
          )
          expect([first!.status, own!.status, second!.status]).toEqual([404, 200, 404])
        }
      }
    }).pipe(Effect.scoped))

  it.live("2024-11-05 · two principals at each pair of nodes: an endpoint of HTTP+SSE belongs to one of them", () =>
    Effect.gen(function*() {
      const nodes = yield* start(yield* makeFleet, 3, { nodeRequests, legacySse: LegacySse.make() })
      for (const home of nodes) {
        const accept = "text/event-stream"
        const stream = yield* openStream(home, { method: "GET", path: "/sse", headers: { accept, "x-user": "ann" } })
        const path = (yield* stream.next).data!
        const ended = yield* openStream(home, { method: "GET", path: "/sse", headers: { accept, "x-user": "ann" } })
        const gone = (yield* ended.next).data!
        ended.leave()
        yield* until(() => home.endpoint.streams === 1)
        for (const node of nodes) {
          for (const user of ["bob", undefined]) {
            const [foreign, unknown] = yield* Effect.forEach(
              [path, gone],
              (path) => send(node, { path, headers: { ...posting, "x-user": user }, body: request(1, "ping") })
            )
            expect(foreign!.status).toBe(404)
            expect(shown(unknown!)).toEqual(shown(foreign!))
          }
        }
        const own = yield* send(nodes[0]!, {
          path,
          headers: { ...posting, "x-user": "ann" },
          body: request(2, "ping")
        })
        expect([own.status, (yield* stream.message).id]).toEqual([202, 2])
        stream.leave()
        yield* until(() => home.endpoint.streams === 0)
      }
    }).pipe(Effect.scoped))
}
