/** Sessions over HTTP at three nodes of a fleet, for each database (2025-11-25, transports, session management). */
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { open, response, start, type TestFleet, textOf, uri } from "../../server/test/http/fleet/kit.ts"
import type { Json } from "../../server/test/http/kit.ts"
import { call, Client, notification, request, until } from "../../server/test/http/session/kit.ts"

/** `makeFleet` makes a fleet of its own for each test, whose nodes share the events of streams. */
export const httpTests = (makeFleet: Effect.Effect<TestFleet>): void => {
  const nodes = Effect.flatMap(makeFleet, (fleet) => start(fleet, 3, { sharesEvents: true }))

  it.live("serves calls, questions, levels, subscriptions, cancellations and DELETE at any node", () =>
    Effect.gen(function*() {
      const clients = yield* open(yield* nodes)
      const [first, second, third] = clients
      for (const [index, client] of clients.entries()) {
        const reply = yield* client.post(call(index, "echo", { text: "hi" }))
        expect([reply.status, textOf(reply.json)]).toEqual([200, "hi"])
      }
      for (const asked of clients) {
        const stream = yield* asked.stream(call(1, "ask"))
        yield* stream.next
        const accepted = yield* third!.post(response((yield* stream.next).json.id, "m"))
        expect([accepted.status, textOf((yield* stream.next).json)]).toEqual([202, "m"])
      }
      const logged = (client: typeof first) =>
        Effect.map(
          client!.post(call(1, "log")),
          ({ messages }) => messages.filter(({ method }: Json) => method !== undefined).length
        )
      for (const [level, count] of [["error", 0], ["info", 1]] as const) {
        yield* second!.post(request(2, "logging/setLevel", { level }))
        for (const client of clients) expect(yield* logged(client)).toBe(count)
      }
      const listening = yield* first!.get()
      yield* second!.post(request(3, "resources/subscribe", { uri }))
      for (const [index, client] of clients.entries()) {
        yield* client.post(call(4, "touch"))
        yield* until(() =>
          listening.waiting().filter(({ json }) => json?.method === "notifications/resources/updated").length > index
        )
      }
      const held = yield* Effect.forkChild(first!.post(call(5, "hold", { key: "a" })))
      yield* until(() => first!.server.control.started.includes("a"))
      yield* second!.post(notification("notifications/cancelled", { requestId: 5 }))
      yield* until(() => first!.server.control.interrupted.includes("a"))
      yield* Fiber.join(held)
      expect((yield* third!.delete()).status).toBe(204)
      for (const client of clients) expect((yield* client.post(call(6, "echo", { text: "" }))).status).toBe(404)
    }).pipe(Effect.scoped))

  it.live("answers 404 to another principal at every node, as to an id that does not exist", () =>
    Effect.gen(function*() {
      const all = yield* nodes
      const clients = yield* open(all, { headers: { "x-user": "alice" } })
      for (const user of ["bob", undefined]) {
        for (const client of clients) {
          const { "x-user": _, ...headers } = client.headers as Record<string, string>
          const stranger = new Client(
            client.server,
            client.id,
            user === undefined ? headers : { ...headers, "x-user": user }
          )
          expect((yield* stranger.post(call(1, "echo", { text: "" }))).status).toBe(404)
          expect((yield* stranger.delete()).status).toBe(404)
        }
      }
      for (const client of clients) expect((yield* client.post(call(2, "echo", { text: "" }))).status).toBe(200)
    }).pipe(Effect.scoped))

  it.live("a GET stream goes on at another node with the events that the client has missed", () =>
    Effect.gen(function*() {
      const [one, two, three] = yield* open(yield* nodes)
      let stream = yield* one!.get()
      // The first event is empty.
      yield* stream.next
      for (const [round, client] of [two!, three!, one!].entries()) {
        yield* client.post(call(1, "announce", { text: `seen ${round}` }))
        const seen = yield* stream.next
        expect(seen.json.params).toEqual({ text: `seen ${round}` })
        stream.leave()
        for (const missed of ["first", "second"]) {
          yield* one!.post(call(2, "announce", { text: `${missed} ${round}` }))
        }
        stream = yield* client.get({ "last-event-id": seen.id! })
        yield* client.post(call(3, "announce", { text: `third ${round}` }))
        const received: Array<string> = []
        while (!received.includes(`third ${round}`)) {
          const { json } = yield* stream.next
          if (json?.method === "notifications/test") received.push(json.params.text)
        }
        expect(received).toEqual([`first ${round}`, `second ${round}`, `third ${round}`])
      }
    }).pipe(Effect.scoped))

  it.live("another node replays the stream of a call that was answered after its client had left", () =>
    Effect.gen(function*() {
      const [one, two] = yield* open(yield* nodes)
      const stream = yield* one!.stream(call(1, "steps", { key: "a" }))
      yield* stream.next
      const seen = yield* stream.next
      stream.leave()
      one!.server.control.open("a")
      const later: Effect.Effect<ReadonlyArray<Json>> = Effect.flatMap(
        two!.read({ "last-event-id": seen.id! }),
        ({ messages }) => messages.some(({ id }) => id === 1) ? Effect.succeed(messages) : Effect.delay(later, 50)
      )
      const messages = yield* later
      expect(messages.map(({ id, params }) => id ?? params.progress)).toEqual([2, 1])
    }).pipe(Effect.scoped))
}
