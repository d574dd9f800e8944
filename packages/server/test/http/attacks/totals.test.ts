/** The memory of what one client makes the server retain, in the numbers of an attack. */
import { describe, expect, it } from "@effect/vitest"
import * as Http from "@skein/server/Http"
import * as McpServer from "@skein/server/McpServer"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as kit from "../kit.ts"
import { FakeAnswer, FakeRequest } from "../session/fake.ts"
import { call, initialize, notification } from "../session/kit.ts"
import { mebibyte } from "./clients.ts"

const server = McpServer.layer(
  { name: "totals", version: "1" },
  Tool.layer(Tool.make("echo"), () => Effect.succeed("hi")),
  Tool.layer(Tool.make("report"), () =>
    Effect.as(
      Effect.forEach(Array.from({ length: 9 }), (_, progress) =>
        Progress.report({ progress, message: "x".repeat(100_000) })),
      "done"
    ))
)

const make = Effect.map(Http.make(), (endpoint) => {
  const say = (body: unknown, headers: object = {}, address = "10.0.0.1", answer = new FakeAnswer()): FakeAnswer => {
    const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
    const method = body === undefined ? "GET" : "POST"
    endpoint.handle(new FakeRequest(method, lower as Http.Headers, body, address), answer)
    return answer
  }
  return { endpoint, say }
})

const heap = (): number => {
  gc!()
  const { external, heapUsed } = process.memoryUsage()
  return heapUsed + external
}

describe("5,000 sessions of one client", () => {
  const infos: { readonly [what: string]: () => object } = {
    "a clientInfo of 65,000 characters": () => ({ title: "x".repeat(65_000) }),
    "as many values as a clientInfo may have": () => ({ x: Array.from({ length: 980 }, () => []) })
  }
  for (const initialized of [false, true]) {
    for (const [what, info] of Object.entries(infos)) {
      it.live(
        `stay within maxRetainedBytes, with ${what}, ${initialized ? "all initialized" : "half open"}`,
        () =>
          Effect.gen(function*() {
            const { endpoint, say } = yield* make
            const before = heap()
            for (let n = 0; n < 5_000; n++) {
              const body = initialize("2025-11-25")
              Object.assign(body.params.clientInfo, info())
              const id = say(body).headers["mcp-session-id"]
              if (id !== undefined && initialized) {
                say(notification("notifications/initialized"), { "mcp-session-id": id })
              }
              expect(endpoint.retainedBytes).toBeLessThan(140 * mebibyte)
            }
            expect(endpoint.sessions).toBeGreaterThan(1_000)
            expect(heap() - before).toBeLessThan(200 * mebibyte)
            const id = say(initialize("2025-11-25"), {}, "10.0.0.2").headers["mcp-session-id"]!
            expect(say(call(1, "echo"), { "mcp-session-id": id }, "10.0.0.2").status).toBe(200)
          }).pipe(Effect.provide(server), Effect.scoped),
        120_000
      )
    }
  }
})

describe("stored events", () => {
  it.live("are counted for each connection that resumes a stream and does not read", () =>
    Effect.gen(function*() {
      const { endpoint, say } = yield* make
      const id = say(initialize("2025-11-25")).headers["mcp-session-id"]!
      const answers: Array<FakeAnswer> = []
      for (let n = 1; n <= 200; n++) {
        expect(say(call(n, "report"), { "mcp-session-id": id }).status).toBe(200)
        const answer = new FakeAnswer()
        answer.slow = true
        answer.drained = Effect.never
        say(undefined, { "mcp-session-id": id, "last-event-id": `${n}-0` }, "10.0.0.1", answer)
        answers.push(answer)
        expect(endpoint.retainedBytes).toBeLessThan(140 * mebibyte)
      }
      expect(endpoint.retainedBytes).toBeGreaterThan(80 * mebibyte)
      expect(answers.filter(({ isClosed }) => isClosed).length).toBeGreaterThan(20)
      const own = say(initialize("2025-11-25"), {}, "10.0.0.2").headers["mcp-session-id"]!
      expect(say(call(1, "echo"), { "mcp-session-id": own }, "10.0.0.2").status).toBe(200)
    }).pipe(Effect.provide(server), Effect.scoped), 120_000)
})

describe("subscriptions/listen", () => {
  it.live("retains no parameters of an open subscription", () =>
    Effect.gen(function*() {
      const { endpoint, say } = yield* make
      const listen = (padding: string) => {
        const { body, headers } = kit.modern("subscriptions/listen", {
          notifications: { toolsListChanged: true, padding },
          padding
        })
        return say(body, headers)
      }
      expect(listen("").status).toBe(200)
      const before = heap()
      for (let n = 0; n < 40; n++) expect(listen("x".repeat(2_000_000)).status).toBe(200)
      expect(endpoint.streams).toBe(41)
      expect(endpoint.retainedBytes).toBeLessThan(100_000)
      expect(heap() - before).toBeLessThan(16 * mebibyte)
    }).pipe(Effect.provide(server), Effect.scoped), 120_000)
})
