/** The options of `NodeHttp.runMain` that only a process shows: probes and calls during its shutdown, its logs, its environment. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as kit from "./kit.ts"
import { run as start } from "./process/run.ts"

const run = (options?: object, env?: Readonly<Record<string, string>>) => start("server.ts", options, env)

const call = (name: string, args: object = {}): kit.Request => kit.modern("tools/call", { name, arguments: args })
const ready: kit.Request = { method: "GET", path: "/readyz" }

describe("a process with health and drainDelay", () => {
  it.live("is not ready after SIGTERM, answers calls for drainDelay, and exits with 143", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* run({ health: true, drainDelay: "2 seconds" })
      expect((yield* kit.send(server, ready)).status).toBe(200)
      const signalled = performance.now()
      server.kill("SIGTERM")
      yield* Effect.promise(() => server.stderr.until("drainDelay: 2000 ms"))
      expect((yield* kit.send(server, ready)).status).toBe(503)
      expect((yield* kit.send(server, call("echo", { text: "hi" }))).json.result.content[0].text).toBe("hi")
      expect(yield* server.exit).toBe(143)
      expect(performance.now() - signalled).toBeGreaterThan(1_900)
      expect(Exit.isFailure(yield* Effect.exit(kit.send(server, ready)))).toBe(true)
    })))

  it.live("exits immediately on a second signal during drainDelay", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* run({ health: true, drainDelay: "10 minutes" })
      server.kill("SIGTERM")
      yield* Effect.promise(() => server.stderr.until("Shutting down ("))
      server.kill("SIGTERM")
      expect(yield* server.exit).toBe(143)
    })))
})

describe("a process with logFormat", () => {
  it.live("json · writes one object per line to stderr", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* run({ logFormat: "json" })
      yield* kit.send(server, call("reject"))
      server.kill("SIGTERM")
      expect(yield* server.exit).toBe(143)
      expect(server.stdout.all).toEqual([])
      const lines = server.stderr.all.map((line) => JSON.parse(line) as Record<string, unknown>)
      expect(lines[0]).toMatchObject({ level: "INFO", message: `Listening on http://127.0.0.1:${server.port}/mcp` })
      expect(lines[1]).toMatchObject({ level: "ERROR", cause: expect.stringContaining("Error: rejected\n") })
      expect(lines.slice(2).map(({ message }) => message)).toEqual([
        "Shutting down (requests: 0, sessions: 0)",
        expect.stringMatching(/^Stopped after \d+ ms$/)
      ])
    })))

  it.live("json · writes the cause of a failed start as one object", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* run({ logFormat: "json", port: 65_536 })
      expect(yield* server.exit).toBe(1)
      expect(server.stderr.all.map((line) => JSON.parse(line) as unknown)).toEqual([
        expect.objectContaining({
          level: "FATAL",
          message: expect.stringMatching(/^Cannot listen on 127.0.0.1:65536: /)
        })
      ])
    })))

  it.live("logfmt · writes one line of pairs", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* run({ logFormat: "logfmt" })
      expect(server.stderr.all).toEqual([
        expect.stringMatching(/^timestamp=\S+ level=Info fiber=\S+ message="Listening on http:/i)
      ])
    })))
})

describe("a process with environment variables", () => {
  it.live("names the variable of the port if the port is taken, unless no variable sets it", () =>
    Effect.scoped(Effect.gen(function*() {
      const first = yield* run()
      const port = String(first.port)
      const line = `Cannot listen on 127.0.0.1:${port}: the port is taken (EADDRINUSE): ` +
        "stop the other program, or set another port"
      const own = yield* run({ port: undefined }, { SKEIN_PORT: port })
      const other = yield* run({ port: undefined, environment: "TEA_" }, { TEA_PORT: port })
      const given = yield* run({ port: first.port }, { SKEIN_PORT: "0" })
      for (const [process, end] of [[own, " (SKEIN_PORT)"], [other, " (TEA_PORT)"], [given, ""]] as const) {
        expect(yield* process.exit).toBe(1)
        expect(process.stderr.all).toEqual([line + end])
      }
    })))

  it.live("uses them for the options that the code leaves out", () =>
    Effect.scoped(Effect.gen(function*() {
      // The program has the option `port`.
      const env = { SKEIN_PORT: "1", SKEIN_PATH: "/api", SKEIN_HEALTH: "true", SKEIN_LOG_FORMAT: "json" }
      const server = yield* run({}, env)
      const line = JSON.parse(server.stderr.all[0]!) as { readonly message: string }
      expect(line.message).toBe(`Listening on http://127.0.0.1:${server.port}/api`)
      expect((yield* kit.send(server, ready)).status).toBe(200)
    })))

  it.live("prints one line with the name and the value, and exits with 1, if one is not valid", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* run({}, { SKEIN_DRAIN_DELAY: "soon" })
      expect(yield* server.exit).toBe(1)
      expect(server.stderr.all).toEqual([
        "SKEIN_DRAIN_DELAY is \"soon\": expected a duration, such as 10s or \"10 seconds\""
      ])
      const other = yield* run({ environment: "TEA_" }, { SKEIN_DRAIN_DELAY: "soon", TEA_PATH: "tea" })
      expect(yield* other.exit).toBe(1)
      expect(other.stderr.all).toEqual(["TEA_PATH is \"tea\": expected a path that begins with a slash"])
    })))
})

describe("a process with routes", () => {
  it.live("finishes the requests in flight after SIGTERM, and releases the resources of the routes", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start("routes.ts")
      expect((yield* kit.send(server, { method: "GET", path: "/reject" })).status).toBe(500)
      const [reply] = yield* Effect.all([
        kit.send(server, { method: "GET", path: "/slow" }),
        Effect.andThen(Effect.promise(() => server.stderr.until("half way")), Effect.sync(() => server.kill("SIGTERM")))
      ], { concurrency: 2 })
      expect(reply.text).toBe("slowly")
      expect(yield* server.exit).toBe(143)
      expect(server.stderr.all.at(-2)).toContain("released")
      expect(server.stderr.all.join("\n")).toContain("rejected")
    })))

  it.live("interrupts streams after shutdownTimeout", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start("routes.ts", { shutdownTimeout: "200 millis" })
      const raw = yield* kit.raw(server)
      raw.write("GET /ticks HTTP/1.1\r\nhost: localhost\r\n\r\n")
      yield* raw.until("tick 1")
      server.kill("SIGTERM")
      expect((yield* raw.closed).text).not.toContain("\r\n0\r\n\r\n")
      expect(yield* server.exit).toBe(143)
    })))
})
