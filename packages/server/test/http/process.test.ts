import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as kit from "./kit.ts"
import { run as start } from "./process/run.ts"

const run = (options?: object) => start("server.ts", options)

const call = (name: string, args: object = {}): kit.Request => kit.modern("tools/call", { name, arguments: args })
const listen = kit.modern("subscriptions/listen", { notifications: { toolsListChanged: true } })

describe("a process that serves HTTP", () => {
  it.live("prints its address on stderr and nothing on stdout; SIGTERM ends it with 143, SIGINT with 130", () =>
    Effect.scoped(Effect.gen(function*() {
      for (const [signal, code] of [["SIGTERM", 143], ["SIGINT", 130]] as const) {
        const server = yield* run()
        expect((yield* kit.send(server, call("echo", { text: "hi" }))).json.result.content[0].text).toBe("hi")
        server.kill(signal)
        expect(yield* server.exit).toBe(code)
        expect(server.stdout.all).toEqual([])
        expect(server.stderr.all).toEqual([
          expect.stringContaining(`Listening on http://127.0.0.1:${server.port}/mcp`),
          expect.stringContaining("Shutting down (requests: 0, sessions: 0)"),
          expect.stringContaining("Stopped after ")
        ])
      }
    })))

  it.live("finishes the requests in flight", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* run()
      const [reply] = yield* Effect.all([
        kit.send(server, call("slow")),
        Effect.andThen(Effect.promise(() => server.stderr.until("half way")), Effect.sync(() => server.kill("SIGTERM")))
      ], { concurrency: 2 })
      expect(reply.json.result.content[0].text).toBe("slowly")
      expect(reply.headers.connection).toBe("close")
      expect(yield* server.exit).toBe(143)
    })))

  it.live("interrupts and answers the requests that do not finish within shutdownTimeout", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* run({ shutdownTimeout: 200 })
      const [reply] = yield* Effect.all([
        kit.send(server, call("never")),
        Effect.andThen(Effect.promise(() => server.stderr.until("it began")), Effect.sync(() => server.kill("SIGTERM")))
      ], { concurrency: 2 })
      expect([reply.status, reply.headers["retry-after"], reply.json.error]).toEqual([200, undefined, {
        code: -32603,
        message: expect.stringContaining("may have run")
      }])
      expect(yield* server.exit).toBe(143)
      expect(server.stderr.all.join()).toContain("it was interrupted")
      const lines = server.stderr.all.flatMap((line) => /(?:INFO|WARN) \(#\d+\): (.*)/.exec(line)?.[1] ?? [])
      expect(lines.slice(-4)).toEqual([
        "Shutting down (requests: 1, sessions: 0)",
        "it was interrupted",
        "Requests interrupted (1): tools/call \"never\"",
        expect.stringMatching(/^Stopped after \d+ ms$/)
      ])
    })))

  it.live("exits immediately on a second signal", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* run()
      const stream = yield* kit.raw(server)
      const body = JSON.stringify(call("never").body)
      const head = Object.entries(call("never").headers!).map(([name, value]) => `${name}: ${String(value)}\r\n`).join(
        ""
      )
      stream.write(`POST /mcp HTTP/1.1\r\nhost: localhost\r\n${head}content-length: ${body.length}\r\n\r\n${body}`)
      yield* Effect.promise(() => server.stderr.until("it began"))
      server.kill("SIGTERM")
      server.kill("SIGINT")
      expect(["130", "143"]).toContain(String(yield* server.exit))
    })))

  it.live("ends 1,000 open streams with a result and without a reset on SIGTERM, before shutdownTimeout", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* run({ shutdownTimeout: 60_000 })
      const streams = yield* Effect.forEach(Array.from({ length: 1_000 }), () => kit.open(server, listen), {
        concurrency: 50
      })
      yield* Effect.forEach(streams, ({ message }) => message, { discard: true })
      const idle = yield* kit.raw(server)
      const signalled = performance.now()
      server.kill("SIGTERM")
      expect(yield* server.exit).toBe(143)
      // It takes a tenth of a second, or seconds on a busy machine.
      expect(performance.now() - signalled).toBeLessThan(25_000)
      for (const { ended, message } of streams) {
        expect((yield* message).result).toMatchObject({ resultType: "complete" })
        expect(yield* ended).toBe("end")
      }
      expect((yield* idle.closed).reset).toBe(false)
    })))

  it.live("prints one line on stderr and exits with 1 if the port is in use or invalid", () =>
    Effect.scoped(Effect.gen(function*() {
      const first = yield* run()
      const second = yield* run({ port: first.port })
      expect(yield* second.exit).toBe(1)
      expect(second.stderr.all).toEqual([
        `Cannot listen on 127.0.0.1:${first.port}: the port is taken (EADDRINUSE): ` +
        "stop the other program, or set another port"
      ])
      const third = yield* run({ port: 65_536 })
      expect(yield* third.exit).toBe(1)
      expect(third.stderr.all).toEqual([expect.stringMatching(/^Cannot listen on 127.0.0.1:65536: /)])
    })))

  it.live("keeps running after a handler rejects", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* run()
      expect((yield* kit.send(server, call("reject"))).json.result.isError).toBe(true)
      expect((yield* kit.send(server, call("echo", { text: "hi" }))).status).toBe(200)
    })))
})
