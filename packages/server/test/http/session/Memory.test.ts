/** The memory that a session needs, and that none of it is left after its end. */
import { describe, expect, it } from "@effect/vitest"
import * as Http from "@skein/server/Http"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import { FakeAnswer, FakeRequest } from "./fake.ts"
import { call, initialize, notification } from "./kit.ts"

const server = McpServer.layer(
  { name: "memory", version: "1" },
  Tool.layer(Tool.make("echo"), () => Effect.succeed("hi"))
)

const make = Effect.map(Http.make(), (endpoint) => {
  const say = (method: string, headers: { readonly [name: string]: string }, body?: unknown): FakeAnswer => {
    const answer = new FakeAnswer()
    endpoint.handle(new FakeRequest(method, headers, body), answer)
    return answer
  }
  /** A session that was used and is idle; `listens` with a stream open. */
  const enter = (listens: boolean): string => {
    const id = say("POST", {}, initialize("2025-11-25")).headers["mcp-session-id"]!
    const headers = { "mcp-session-id": id }
    say("POST", headers, notification("notifications/initialized"))
    expect(say("POST", headers, call(1, "echo")).status).toBe(200)
    if (listens) expect(say("GET", headers).status).toBe(200)
    return id
  }
  const enterAll = (count: number, listens: boolean): Array<string> =>
    Array.from({ length: count }, () => enter(listens))
  return { endpoint, say, enter, enterAll }
})

const heap = Effect.callback<number>((resume) =>
  // Finished requests are cleaned up in the next turns of the event loop.
  void setImmediate(() =>
    setImmediate(() => {
      for (let n = 0; n < 3; n++) globalThis.gc!()
      resume(Effect.succeed(process.memoryUsage().heapUsed))
    })
  )
)

describe("memory", () => {
  for (const listens of [false, true]) {
    it.live(
      `a session that ${
        listens ? "only listens" : "is idle"
      } costs at most 3 KiB, the 6,000th like the 1,000th, and nothing after it is closed`,
      () =>
        Effect.gen(function*() {
          const { endpoint: { sessions }, enterAll, say } = yield* make
          expect(sessions).toBe(0)
          const end = (ids: ReadonlyArray<string>) => {
            for (const id of ids) expect(say("DELETE", { "mcp-session-id": id }).status).toBe(204)
          }
          end(enterAll(1_000, listens))
          const before = yield* heap
          const first = enterAll(1_000, listens)
          const some = yield* heap
          const more = enterAll(5_000, listens)
          const many = yield* heap
          expect((some - before) / 1_000).toBeLessThan(3 * 1024)
          expect((many - some) / 5_000).toBeLessThan(3 * 1024)
          end(first)
          end(more)
          const after = yield* heap
          // Tables keep their capacity. The remaining bytes do not grow with the number of closed sessions.
          expect((after - before) / 6_000).toBeLessThan(200)
          end(enterAll(6_000, listens))
          expect(((yield* heap) - after) / 6_000).toBeLessThan(30)
        }).pipe(Effect.provide(server), Effect.scoped),
      60_000
    )
  }

  it.live("releases the memory of 10,000 refused requests", () =>
    Effect.gen(function*() {
      const { endpoint, say } = yield* make
      const refuse = (count: number) => {
        for (let n = 0; n < count; n++) {
          expect(
            say("POST", {}, { jsonrpc: "2.0", id: 1, method: "initialize", params: { padding: "x".repeat(10_000) } })
              .status
          )
            .toBe(200)
          expect(say("POST", { "mcp-session-id": `no-${n}` }, call(1, "echo")).status).toBe(404)
        }
      }
      refuse(1_000)
      const before = yield* heap
      refuse(5_000)
      const after = yield* heap
      expect(endpoint.sessions).toBe(0)
      expect((after - before) / 10_000).toBeLessThan(50)
    }).pipe(Effect.provide(server), Effect.scoped), 60_000)
})

describe("a client that disconnects before its session is opened", () => {
  it.effect("leaves no session behind, because no client has its id", () =>
    Effect.gen(function*() {
      const made = yield* make
      const answer = new FakeAnswer()
      answer.isClosed = true
      made.endpoint.handle(new FakeRequest("POST", {}, initialize("2025-11-25")), answer)
      expect(made.endpoint.sessions).toBe(0)
      made.enter(false)
      expect(made.endpoint.sessions).toBe(1)
    }).pipe(Effect.provide(server)))
})
