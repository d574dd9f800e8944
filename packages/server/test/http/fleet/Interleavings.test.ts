/**
 * Clients whose requests reach the nodes of a fleet at random, while messages between the nodes take a while, streams
 * break, and nodes stop, start and lose their connection to the others. The sequence is drawn from a seed, which a failure
 * names.
 */
import { describe, expect, it } from "@effect/vitest"
import type * as Http from "@skein/server/Http"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import type { Json } from "../kit.ts"
import { FakeAnswer, FakeRequest } from "../session/fake.ts"
import { call, initialize, notification, request } from "../session/kit.ts"
import { type FakeNode, read, startNode } from "./fakeNode.ts"
import { response, uri } from "./kit.ts"
import { MemoryFleet } from "./memoryFleet.ts"

/** Numbers from 0 to below 1 (mulberry32). */
const random = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296
}

/** A node, and since when it cannot answer with what the others know. */
interface Node extends FakeNode {
  /** When it was last cut off, stopped, or not yet up to date again. */
  troubledUntil: number
  troubles: number
}

/** A request of a client, until it is answered. */
interface Sent {
  readonly answer: FakeAnswer
  readonly node: Node
  /** Whether the answer tells nothing, because the node or its connection to the others failed meanwhile. */
  readonly isTroubled: () => boolean
  readonly onAnswer: (sent: Sent) => void
}

/** A client, and its knowledge of its session. */
class Client {
  readonly headers: { readonly [name: string]: string }
  isReady = false
  level: "error" | "info" | undefined = undefined
  levelChanges = 0
  isSubscribed = false
  changes = 0
  updates = 0
  /** The latest change of the session: the client waits for its answer. */
  changing: FakeAnswer | undefined = undefined
  /** Whether a change of the resource was not announced yet. */
  isStale = false
  isDeleting = false
  isDeleted = false
  stream: FakeAnswer | undefined = undefined
  lastId = ""
  /** Whether messages may have been lost, at a node that failed. */
  isLossy = false
  readonly announced: Array<string> = []
  readonly received: Array<string> = []
  readonly questions: Array<{ readonly id: number; readonly answers: Array<string> }> = []
  readonly held: Array<{ readonly id: string; readonly node: Node }> = []

  readonly id: string

  constructor(id: string) {
    this.id = id
    this.headers = { "mcp-session-id": id }
  }

  /** Reads the stream, as far as it has arrived. */
  read(): void {
    const { stream } = this
    if (stream === undefined) return
    for (const { id, json } of read(stream)) {
      if (id !== undefined) this.lastId = id
      if (json?.method === "notifications/test") this.received.push(json.params.text)
      if (json?.method === "notifications/resources/updated") {
        this.updates++
        this.isStale = false
      }
    }
    stream.text = ""
  }
}

interface Options {
  readonly seed: number
  /** Whether nodes stop and lose their connections. */
  readonly hasFailures: boolean
}

const user: Http.FindPrincipal = () => ({ id: "ann" })
const stranger: Http.FindPrincipal = () => ({ id: "bob" })
const nobody: Http.FindPrincipal = () => undefined

const play = ({ hasFailures, seed }: Options) =>
  Effect.gen(function*() {
    const next = random(seed)
    const below = (n: number): number => Math.floor(next() * n)
    const pick = <A>(all: ReadonlyArray<A>): A | undefined => all[below(all.length)]
    const fleet = new MemoryFleet(() => below(51))
    const nodes: Array<Node> = []
    const start = Effect.map(startNode(fleet), (node) => nodes.push({ ...node, troubledUntil: 0, troubles: 0 }))
    for (let n = 0; n < 3; n++) yield* start
    const clock = yield* Effect.clockWith(Effect.succeed)
    const now = () => clock.currentTimeMillisUnsafe()
    const is = (what: string, actual: unknown, expected: unknown) =>
      expect({ seed, what, value: actual }).toEqual({ seed, what, value: expected })
    let unanswered: Array<Sent> = []
    let count = 0
    // How often idle copies and requests to clients have expired.
    let jumps = 0
    // The sessions whose clients have not received their ids, at nodes that failed.
    let orphans = 0

    const isTroubled = (node: Node) => now() < node.troubledUntil
    const send = (
      node: Node,
      method: string,
      headers: Client["headers"],
      body: Json | undefined,
      onAnswer: (sent: Sent) => void,
      findPrincipal = user
    ): FakeAnswer => {
      const answer = new FakeAnswer()
      const { troubles } = node
      const wasTroubled = isTroubled(node)
      unanswered.push({ answer, node, isTroubled: () => wasTroubled || node.troubles !== troubles, onAnswer })
      node.endpoint.handle(new FakeRequest(method, headers, body), answer, findPrincipal)
      return answer
    }
    const clients: Array<Client> = []
    /** Sends a message of a session, and checks that its answer fits the session. */
    const post = (client: Client, node: Node, body: Json, onAnswer: (messages: Array<Json>, sent: Sent) => void) => {
      const wasDeleted = client.isDeleted
      return send(node, "POST", client.headers, body, (sent) => {
        if (sent.isTroubled()) return
        const { status } = sent.answer
        if (wasDeleted) return is("status after DELETE", status, 404)
        if (client.isDeleting) return
        is("status", status, body.id === undefined || body.method === undefined ? 202 : 200)
        onAnswer(read(sent.answer).flatMap(({ json }) => json === undefined ? [] : [json]), sent)
      })
    }
    const resultOf = (messages: Array<Json>) => messages.find(({ result }) => result !== undefined)?.result
    const textOf = (messages: Array<Json>) => resultOf(messages)?.content[0].text
    const open = (node: Node) => {
      send(node, "POST", {}, initialize("2025-11-25"), (sent) => {
        if (sent.isTroubled()) return void orphans++
        is("initialize", sent.answer.status, 200)
        const client = new Client(sent.answer.headers["mcp-session-id"]!)
        client.isLossy = nodes.some(isTroubled)
        clients.push(client)
        post(client, pick(nodes)!, notification("notifications/initialized"), () => void (client.isReady = true))
      })
    }
    /** Leaves the stream. A client without an event id waits for one: a stream cannot be resumed without it. */
    const leave = (client: Client, isNoticed: boolean): boolean => {
      const { stream } = client
      if (stream === undefined) return true
      if (client.lastId === "" || next() < 0.5) client.read()
      if (client.lastId === "" && !stream.isClosed) return false
      client.stream = undefined
      if (isNoticed) stream.leave()
      return true
    }
    const listen = (client: Client, node: Node) => {
      if (!leave(client, next() < 0.5)) return
      const isResuming = client.lastId !== ""
      const headers = isResuming ? { ...client.headers, "last-event-id": client.lastId } : client.headers
      const wasDeleted = client.isDeleted
      const stream = client.stream = send(node, "GET", headers, undefined, (sent) => {
        if (sent.isTroubled()) return
        if (wasDeleted) return is("GET after DELETE", sent.answer.status, 404)
        if (!client.isDeleting && client.stream === stream) is("GET", sent.answer.status, 200)
      })
    }
    const change = (client: Client, node: Node, isSubscribing: boolean) => {
      if (client.changing?.isClosed === false) return
      client.changes++
      client.isSubscribed = client.isStale = false
      const method = isSubscribing ? "resources/subscribe" : "resources/unsubscribe"
      client.changing = post(client, node, request(`s${++count}`, method, { uri }), (messages) => {
        is(method, resultOf(messages), {})
        client.isSubscribed = isSubscribing
      })
    }
    const touch = (client: Client, node: Node) => {
      // A stream without an event id is not continued.
      const isNotified = (one: Client) => one.isSubscribed && one.lastId !== "" && !one.isDeleting
      for (const one of clients) one.read()
      const notified = clients.filter(isNotified).map((one) => ({ one, changes: one.changes, updates: one.updates }))
      post(client, node, call(`t${++count}`, "touch"), (messages) => {
        is("touch", textOf(messages), "touched")
        for (const { changes, one, updates } of notified) {
          one.read()
          if (isNotified(one) && changes === one.changes && updates === one.updates) one.isStale = true
        }
      })
    }
    const ask = (client: Client, node: Node) => {
      const question = { id: 0, answers: [] as Array<string> }
      const before = jumps
      const answer = post(client, node, call(`a${++count}`, "ask"), (messages) => {
        // The request to the client times out after a minute.
        if (before !== jumps && resultOf(messages)?.isError === true) return
        is("an answer that was given", question.answers.includes(textOf(messages)), true)
      })
      asking.push({ client, answer, question })
    }
    const asking: Array<{ client: Client; answer: FakeAnswer; question: { id: number; answers: Array<string> } }> = []
    const reply = ({ answer, client, question }: typeof asking[number]) => {
      const asked = read(answer).find(({ json }) => json?.method === "sampling/createMessage")?.json
      const node = pick(nodes)!
      if (asked === undefined || isTroubled(node)) return
      question.answers.push(`m${++count}`)
      send(node, "POST", client.headers, response(asked.id, question.answers.at(-1)!), () => {})
    }
    const acts: ReadonlyArray<(client: Client, node: Node) => Effect.Effect<unknown> | void> = [
      (client, node) => {
        const text = `e${++count}`
        post(client, node, call(text, "echo", { text }), (messages) => is("echo", textOf(messages), text))
      },
      ask,
      ...Array.from({ length: 3 }, () => () => {
        const one = pick(asking)
        if (one !== undefined && !one.answer.isClosed) reply(one)
      }),
      (client, node) => {
        if (client.changing?.isClosed === false) return
        const level = next() < 0.5 ? "error" : "info"
        client.levelChanges++
        client.level = undefined
        client.changing = post(client, node, request(`l${++count}`, "logging/setLevel", { level }), (messages) => {
          is("setLevel", resultOf(messages), {})
          client.level = level
        })
      },
      (client, node) => {
        const { level, levelChanges } = client
        post(client, node, call(`g${++count}`, "log"), (messages) => {
          if (level === undefined || levelChanges !== client.levelChanges) return
          const logs = messages.filter(({ method }) => method === "notifications/message")
          is(`logs at level ${level}`, logs.length, level === "info" ? 1 : 0)
        })
      },
      (client, node) => change(client, node, true),
      (client, node) => next() < 0.3 ? change(client, node, false) : undefined,
      touch,
      touch,
      ...Array.from({ length: 3 }, () => (client: Client, node: Node) => {
        const text = `n${++count}`
        client.announced.push(text)
        post(
          client,
          node,
          call(text, "announce", { text }),
          (messages) => is("announce", textOf(messages), "announced")
        )
      }),
      listen,
      listen,
      (client) => void leave(client, true),
      (client) => client.read(),
      (client, node) => {
        const id = `h${++count}`
        client.held.push({ id, node })
        send(node, "POST", client.headers, call(id, "hold", { key: id }), () => {})
      },
      (client, node) => {
        const held = client.held.shift()
        if (held === undefined) return
        if (next() < 0.5) return held.node.control.open(held.id)
        // A request that has begun can be cancelled.
        if (!held.node.control.started.includes(held.id) || client.isDeleting || isTroubled(node)) {
          return void client.held.push(held)
        }
        const { troubles } = held.node
        post(client, node, notification("notifications/cancelled", { requestId: held.id }), () => {
          if (!isTroubled(held.node)) cancelled.push({ ...held, troubles })
        })
      },
      (client, node) => {
        if (next() < 0.9 || client.isDeleting) return
        client.isDeleting = true
        send(node, "DELETE", client.headers, undefined, (sent) => {
          if (sent.isTroubled()) return
          is("DELETE", sent.answer.status, 204)
          client.isDeleted = true
        })
      },
      (client, node) => {
        if (isTroubled(node)) return
        const method = pick(["GET", "POST", "DELETE"])!
        send(node, method, client.headers, method === "POST" ? call(1, "echo", { text: "" }) : undefined, (sent) => {
          if (!sent.isTroubled()) is("another principal", sent.answer.status, 404)
        }, next() < 0.5 ? stranger : nobody)
      },
      (_, node) => next() < 0.2 && clients.length < 4 ? open(node) : undefined,
      () => {
        if (next() < 0.9) return
        jumps++
        return TestClock.adjust(61_000)
      }
    ]
    const cancelled: Array<{ readonly id: string; readonly node: Node; readonly troubles: number }> = []
    const trouble = (node: Node, until: number) => {
      node.troubles++
      node.troubledUntil = until
      for (const client of clients) client.isLossy = true
    }
    const failures: ReadonlyArray<(node: Node) => Effect.Effect<unknown, never, Scope.Scope> | void> = [
      (node) => {
        if (nodes.length < 3) return
        nodes.splice(nodes.indexOf(node), 1)
        trouble(node, Infinity)
        if (next() < 0.5) fleet.stop(node.number)
        node.control.release()
        return Effect.forkScoped(
          Effect.andThen(Scope.close(node.scope, Exit.void), Effect.sync(() => fleet.stop(node.number)))
        )
      },
      () => nodes.length < 3 ? start : undefined,
      (node) => {
        if (node.troubledUntil === Infinity) {
          fleet.cut(node.number, false)
          // It reads the records again.
          trouble(node, now() + 300)
        } else {
          trouble(node, Infinity)
          fleet.cut(node.number, true)
        }
      }
    ]
    const settle = () => {
      const all = unanswered
      unanswered = []
      for (const sent of all) {
        if (sent.answer.status !== 0 && (sent.answer.isClosed || sent.answer.text.startsWith("id"))) {
          // A call whose answer is a stream lasts until its end.
          if (sent.answer.isClosed) sent.onAnswer(sent)
          else unanswered.push(sent)
        } else unanswered.push(sent)
      }
    }
    const pass = (milliseconds: number) =>
      Effect.gen(function*() {
        for (let passed = 0; passed < milliseconds; passed += 20) {
          yield* TestClock.adjust(20)
          settle()
        }
      })

    open(nodes[0]!)
    open(nodes[1]!)
    yield* pass(400)
    for (let turn = 0; turn < 60; turn++) {
      const client = pick(clients.filter(({ isReady }) => isReady))
      const node = pick(nodes)!
      if (client === undefined) open(node)
      else if (hasFailures && next() < 0.05) yield* failures[below(failures.length)]!(node) ?? Effect.void
      else yield* acts[below(acts.length)]!(client, node) || Effect.void
      settle()
      if (next() < 0.7) yield* TestClock.adjust(below(40))
      settle()
    }
    // Everything arrives, and every client listens.
    for (const node of nodes) if (node.troubledUntil === Infinity) fleet.cut(node.number, false)
    yield* pass(600)
    for (const node of nodes) node.control.release()
    for (const node of nodes) node.troubledUntil = 0
    for (const one of asking) if (!one.answer.isClosed) reply(one)
    for (let attempt = 0; attempt < 3; attempt++) {
      // A stream that was opened earlier may replace this one, and ends it.
      for (const client of clients) {
        if (!client.isDeleting && (attempt === 0 || client.stream?.isClosed === true)) listen(client, pick(nodes)!)
      }
      yield* pass(600)
    }
    for (const { id, node, troubles } of cancelled) {
      if (node.troubles === troubles) is("cancelled", node.control.interrupted.includes(id), true)
    }
    for (const client of clients) {
      if (client.isDeleting) continue
      client.read()
      if (!fleet.hasLost(client.id)) is("announced", client.isStale, false)
      const { announced, isLossy, received } = client
      is("received twice", received.filter((text, index) => received.indexOf(text) !== index), [])
      is("received", received.filter((text) => !announced.includes(text)), [])
      if (!isLossy) is("lost", announced.filter((text) => !received.includes(text)), [])
    }
    for (const client of clients) {
      if (!client.isDeleted) send(pick(nodes)!, "DELETE", client.headers, undefined, () => {})
    }
    yield* pass(400)
    if (orphans === 0) is("rows", fleet.records.size, 0)
    for (const { endpoint, sharing } of orphans === 0 ? nodes : []) {
      const { inFlightRequests, sessions, streams } = endpoint
      is("left", { inFlightRequests, sessions, streams, shared: sharing.size }, {
        inFlightRequests: 0,
        sessions: 0,
        streams: 0,
        shared: 0
      })
      is("bytes", endpoint.retainedBytes, 0)
    }
    yield* Effect.all(nodes.map(({ scope }) => Scope.close(scope, Exit.void)), { discard: true })
  }).pipe(Effect.scoped)

const seeds = (first: number, count: number) => Array.from({ length: count }, (_, n) => first + n)

describe("at random", () => {
  it.effect(
    "serves sessions at all nodes, and loses nothing",
    () => Effect.forEach(seeds(1, 200), (seed) => play({ seed, hasFailures: false }), { discard: true }),
    120_000
  )

  it.effect(
    "serves sessions at all nodes while nodes stop, start and are cut off",
    () => Effect.forEach(seeds(1_001, 200), (seed) => play({ seed, hasFailures: true }), { discard: true }),
    120_000
  )
})
