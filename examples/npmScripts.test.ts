/** The examples as a user starts them: with npm. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { required, unavailable } from "../packages/sql/test/postgres.ts"
import * as kit from "./testKit.ts"

/** Runs a script of npm. Closing the scope ends npm and the program: after SIGKILL, npm would leave the program behind. */
const npm = (script: string, ...args: ReadonlyArray<string>) =>
  Effect.tap(
    kit.start({ command: "npm", args: ["run", "-s", script, "--", ...args] }),
    ({ ended, kill }) =>
      Effect.addFinalizer(() => {
        kill("SIGTERM")
        // The program shares the stdout of npm, which ends with both.
        return Effect.promise(() => ended)
      })
  )

const refuses = (url: string): Promise<boolean> => fetch(url).then(() => false, () => true)

describe("a server that npm started", () => {
  for (const script of ["start", "everything", "echo", "sqlite", "page"]) {
    it.live(`${script} prints no warning, and ends when npm is terminated`, () =>
      Effect.gen(function*() {
        const server = yield* npm(script, "--port", "0")
        const url = yield* Effect.promise(() => server.until(/http:\/\/127\.0\.0\.1:\d+\/\S*/))
        expect(yield* Effect.promise(() => refuses(url))).toBe(false)
        server.kill("SIGTERM")
        yield* Effect.promise(() => server.ended)
        expect(yield* Effect.promise(() => refuses(url))).toBe(true)
        expect(server.out() + server.err()).not.toContain("Warning")
      }))

    it.live(`${script} exits with 2 for a wrong command line, and with 1 if the port is taken`, () =>
      Effect.gen(function*() {
        const wrong = yield* npm(script, "--port", "x")
        expect(yield* Effect.promise(() => wrong.ended)).toBe(2)
        expect(wrong.err()).toContain("--port is a number from 0 to 65535, not \"x\"\nusage: npm ")
        const unknown = yield* npm(script, "--prot", "1")
        expect(yield* Effect.promise(() => unknown.ended)).toBe(2)
        expect(unknown.err()).toContain("\nusage: npm ")

        const first = yield* npm("echo", "--port", "0")
        const { port } = new URL(yield* kit.urlOf(first))
        const second = yield* npm(script, "--port", port)
        expect(yield* Effect.promise(() => second.ended)).toBe(1)
        expect(second.err()).toMatch(/^(.* INFO .*\n)?Cannot .*EADDRINUSE.*\n$/)
      }))
  }

  it.live("a program of `npm run try` ends when npm is terminated", () =>
    Effect.gen(function*() {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(kit.path("../scratchpad/npm-"))),
        (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
      )
      const file = join(folder, "httpServer.ts")
      writeFileSync(file, readFileSync(kit.path("hello/httpServer.ts"), "utf8").replace("port: 3000", "port: 0"))
      const server = yield* npm("try", file)
      const url = yield* kit.urlOf(server)
      server.kill("SIGTERM")
      yield* Effect.promise(() => server.ended)
      expect(yield* Effect.promise(() => refuses(url))).toBe(true)
    }))
})

describe("npm run fleet", () => {
  it.skipIf(unavailable === undefined || required)(`not checked: ${unavailable}`, () => {})

  if (unavailable === undefined || required) {
    it.live("prints no warning, and ends with its nodes when npm is terminated", () =>
      Effect.gen(function*() {
        const fleet = yield* npm("fleet", "up", "--port", "0", "--nodes", "1", "--clients", "1")
        const url = yield* Effect.promise(() => fleet.until(/http:\/\/127\.0\.0\.1:\d+\/mcp/))
        yield* Effect.promise(() => fleet.until(/Call a tool:.*\n/))
        expect(yield* Effect.promise(() => refuses(url))).toBe(false)
        fleet.kill("SIGTERM")
        yield* Effect.promise(() => fleet.ended)
        expect(yield* Effect.promise(() => refuses(url))).toBe(true)
        expect(fleet.out() + fleet.err()).not.toContain("Warning")
      }))
  }

  it.live("exits with 2 for a wrong command line", () =>
    Effect.gen(function*() {
      const wrong = yield* npm("fleet", "stop")
      expect(yield* Effect.promise(() => wrong.ended)).toBe(2)
      expect(wrong.err()).toContain("\nusage: npm run fleet")
    }))
})

describe("npm run everything", () => {
  it.live("lets a web page on this machine call it, as the Inspector does without its proxy", () =>
    Effect.gen(function*() {
      const url = yield* kit.urlOf(yield* npm("everything", "--port", "0"))
      const origin = "http://localhost:6274"
      const asked = "content-type,mcp-protocol-version,mcp-session-id"
      const headers = { origin, "access-control-request-method": "POST", "access-control-request-headers": asked }
      const preflight = yield* Effect.promise(() => fetch(url, { method: "OPTIONS", headers }))
      expect(preflight.status).toBe(204)
      expect(preflight.headers.get("access-control-allow-origin")).toBe(origin)
      const allowed = preflight.headers.get("access-control-allow-headers")!.split(", ")
      expect(asked.split(",").filter((name) => !allowed.includes(name))).toEqual([])
    }))
})
