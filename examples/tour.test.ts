import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import * as Stdio from "@skein/client/Stdio"
import type { Transport } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import * as kit from "./testKit.ts"
import { commands } from "./tour/welcome.ts"

const ready = /The server is ready.*\n/
const lastRequest = / {2}tools\/call juggle .*\n/

describe("npm start", () => {
  it.live("prints the URL, commands to connect, and a log of its own first requests", () =>
    Effect.gen(function*() {
      const server = yield* kit.start(kit.program("tour/main.ts", "--port", "0", "--hosts"))
      const url = yield* kit.urlOf(server)
      yield* Effect.promise(() => server.until(lastRequest))
      const { greet, loggedIn: _, login: __, task, ...settings } = commands(url)
      for (const command of [greet, task]) expect(server.out()).toContain(` ${command}\n`)
      for (const setting of Object.values(settings)) expect(server.out()).toContain(`\n${setting}\n`)
      for (
        const shown of [
          /^ {2}initialize +welcome 1 +2025-11-25 +ok +\d+\.\d ms$/m,
          /^ {2}tools\/call greet {"name":"Ada"} +welcome 1 +2025-11-25 +ok +\d+\.\d ms$/m,
          /^ {2}tools\/call order {"cake":"sachertorte"} +welcome 1 +2026-07-28 +tool error +\d+\.\d ms$/m,
          /^ {2}tools\/call juggle +welcome 1 +2026-07-28 +error -32602 +\d+\.\d ms$/m
        ]
      ) expect(server.out()).toMatch(shown)
      expect(server.err()).toBe("")
      expect(server.out()).not.toContain("\u001b")
    }))

  it.live("says that it is ready first, in a screen of lines", () =>
    Effect.gen(function*() {
      const server = yield* kit.start(kit.program("tour/main.ts", "--port", "0"))
      yield* Effect.promise(() => server.until(lastRequest))
      const lines = server.out().trim().split("\n")
      expect(lines[0]).toBe(`The server is ready: ${yield* kit.urlOf(server)} (Ctrl-C stops it)`)
      expect(lines.length).toBeLessThan(20)
      expect(server.out()).toContain("npm start -- --hosts")
    }))

  it.live("shows an example session in its console", () =>
    Effect.gen(function*() {
      const server = yield* kit.start(kit.program("tour/main.ts", "--port", "0", "--console"))
      const line = yield* Effect.promise(() => server.until(/Open the console: .*\n/))
      const url = /http\S+/.exec(line)![0]
      const top = Effect.scoped(Effect.gen(function*() {
        const shown = yield* kit.start(kit.program("../packages/cli/src/bin/skein.ts", "top", "--once", url))
        yield* Effect.promise(() => shown.ended)
        return shown.out()
      }))
      const shown = yield* Effect.repeat(top, { until: (text) => text.includes("the answer of a person") })
      expect(shown).toContain("example guest 1")
      expect(shown).toContain("tools/call book")
    }))

  it.live("prints settings for host applications, each of which connects", () =>
    Effect.gen(function*() {
      const server = yield* kit.start(kit.program("tour/main.ts", "--port", "0"))
      const url = yield* kit.urlOf(server)
      const { claude, code, codex, codexToml, cursor, gemini, mcpServers, vsCode } = commands(url)
      const connected = (transport: Transport) =>
        Effect.scoped(Effect.map(Client.make(transport), (client) => client.server?.name))

      // A bare key and a basic string of TOML.
      const [, table, key, codexUrl] = /^\[([a-z_]+)\.([A-Za-z0-9_-]+)\]\nurl = "([^"\\]+)"$/.exec(codexToml)!
      expect([table, key]).toEqual(["mcp_servers", "tea-house"])
      const [, added] = /^code --add-mcp '([^']+)'$/.exec(code)!
      expect(JSON.parse(added!)).toEqual({ name: "tea-house", type: "http", url })
      expect(JSON.parse(vsCode)).toEqual({ servers: { "tea-house": { type: "http", url } } })
      expect(JSON.parse(cursor)).toEqual({ mcpServers: { "tea-house": { url } } })
      const urls = [
        codexUrl!,
        JSON.parse(added!).url,
        ...[claude, codex, gemini].map((line) => line.split(" ").at(-1)!)
      ]
      for (const found of urls) expect(yield* connected(Http.transport({ url: found }))).toBe("tea-house")

      const { args, command } = JSON.parse(mcpServers).mcpServers["tea-house"]
      // A host application starts it in any folder.
      expect(yield* connected(Stdio.transport({ command, args, cwd: tmpdir(), stderr: "ignore" }))).toBe("tea-house")
    }))

  it.live("prints a curl command that works, and logs its request", () =>
    Effect.gen(function*() {
      const server = yield* kit.start(kit.program("tour/main.ts", "--port", "0"))
      const url = yield* kit.urlOf(server)
      const { curl } = commands(url)
      const headers = Array.from(curl.matchAll(/-H '([^:]+): ([^']+)'/g), ([, name, value]): [string, string] => [
        name!,
        value!
      ])
      const body = /-d '([^']+)'/.exec(curl)![1]!
      const response = yield* Effect.promise(() => fetch(url, { method: "POST", headers, body }))
      const { result } = yield* Effect.promise(() => response.json() as Promise<kit.Json>)
      expect(result.structuredContent).toEqual({ total: 10, currency: "EUR" })
      yield* Effect.promise(() =>
        server.until(/tools\/call bill {"tea":"oolong","cups":2} +curl 1 +2026-07-28 +ok +\d+\.\d ms\n/)
      )
    }))

  it.live("replaces control characters in logged requests, and shortens long ones", () =>
    Effect.gen(function*() {
      const server = yield* kit.start(kit.program("tour/main.ts", "--port", "0"))
      const ask = yield* kit.connect(yield* kit.urlOf(server), "2025-11-25")
      yield* ask("tools/call", { name: "\u001b[2J\n\u202eevil", arguments: { long: "x".repeat(200) } })
      const line = yield* Effect.promise(() => server.until(/ {2}tools\/call \?\[2J.*ms\n/))
      expect(line).toContain("tools/call ?[2J??evil {\"long\":\"xxx")
      expect(line).toMatch(/x… +test 1 +2025-11-25 +error -32602 /)
      expect(line.length).toBeLessThanOrEqual(110)
    }))

  for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
    it.live(`shuts down after ${signal}`, () =>
      Effect.gen(function*() {
        const server = yield* kit.start(kit.program("tour/main.ts", "--port", "0"))
        yield* Effect.promise(() => server.until(ready))
        server.kill(signal)
        expect(yield* Effect.promise(() => server.ended)).toBe(code)
        expect(server.err()).toMatch(/^.*Shutting down.*\n.*Stopped after \d+ ms\n$/)
      }))
  }

  it.live("reports a port in use in one line", () =>
    Effect.gen(function*() {
      const first = yield* kit.start(kit.program("tour/main.ts", "--port", "0"))
      const { port } = new URL(yield* kit.urlOf(first))
      const second = yield* kit.start(kit.program("tour/main.ts", "--port", port, "--data", ":memory:"))
      expect(yield* Effect.promise(() => second.ended)).toBe(1)
      expect([second.out(), second.err()]).toEqual([
        "",
        `Cannot listen on 127.0.0.1:${port}: the port is taken (EADDRINUSE): stop the other program, or set another port\n`
      ])
    }))

  it.live("reports a port in use, and not that the running server uses the file of the tasks", () =>
    Effect.gen(function*() {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-tour-"))),
        (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
      )
      const data = join(folder, "tasks.db")
      const first = yield* kit.start(kit.program("tour/main.ts", "--port", "0", "--data", data))
      const { port } = new URL(yield* kit.urlOf(first))
      const second = yield* kit.start(kit.program("tour/main.ts", "--port", port, "--data", data))
      expect(yield* Effect.promise(() => second.ended)).toBe(1)
      expect(second.err()).toBe(
        `Cannot listen on 127.0.0.1:${port}: the port is taken (EADDRINUSE): stop the other program, or set another port\n`
      )
      const other = yield* kit.start(kit.program("tour/main.ts", "--port", "0", "--data", data))
      expect(yield* Effect.promise(() => other.ended)).toBe(1)
      expect(other.err()).toContain(`"${data}" is in use by another process or client`)
    }))

  it.live("exits with 2 for a wrong command line, and prints the usage", () =>
    Effect.gen(function*() {
      const usage =
        "usage: npm start -- [--port <port> [--auth] [--console] [--hosts] | --stdio] [--data <file> | --postgres <url>]\n"
      for (const args of [["--prot", "0"], ["--port", "x"], ["--port", "65536"], ["--port"], ["more"]]) {
        const server = yield* kit.start(kit.program("tour/main.ts", ...args))
        expect(yield* Effect.promise(() => server.ended)).toBe(2)
        expect(server.err().endsWith(`\n${usage}`)).toBe(true)
        expect(server.out()).toBe("")
      }
      const help = yield* kit.start(kit.program("tour/main.ts", "--help"))
      expect(yield* Effect.promise(() => help.ended)).toBe(0)
      expect(help.out()).toBe(usage)
    }))

  it.live("serves stdin and stdout with --stdio, and logs requests to stderr", () =>
    Effect.gen(function*() {
      let log = ""
      const transport = Stdio.transport({
        ...kit.program("tour/main.ts", "--stdio"),
        stderr: (text) => void (log += text)
      })
      const greeted = yield* Effect.scoped(
        Effect.flatMap(Client.make(transport), (client) => client.callTool("greet", { name: "Ada" }))
      )
      expect(greeted.content).toMatchObject([{ text: "Welcome to the tea house, Ada!" }])
      expect(log).toMatch(/^ {2}tools\/call greet {"name":"Ada"} .* ok +\d+\.\d ms$/m)
      expect(log).not.toContain("\u001b")
    }))
})

describe("npm run tour", () => {
  const { args, command } = kit.program("tour/tour.ts")
  let finished: Promise<{ readonly stdout: string; readonly stderr: string }> | undefined
  const tour = () => finished ??= promisify(execFile)(command, args)

  it("prints the same conversation for both revisions, and exits", async () => {
    const { stdout, stderr } = await tour()
    const [, session, stateless] = stdout.split(/^2025-11-25: |^2026-07-28: /m)
    expect(stderr).toBe("")
    expect(session).toContain("→ initialize")
    expect(stateless).toContain("→ server/discover")
    for (const conversation of [session, stateless]) {
      // Long messages are wrapped at any position.
      const seen = conversation?.replaceAll(/\s/g, "")
      const expectSeen = (text: string) => expect(seen).toContain(text.replaceAll(" ", ""))
      expectSeen("Welcome to the tea house, Ada!")
      expectSeen("The program receives a typed value: { total: 10, currency: \"EUR\" }.")
      expectSeen("\"progress\":3,\"total\":3")
      expectSeen("sachertorte is sold out today")
      expectSeen("-32602 Unknown tool: juggle")
      expectSeen("→ notifications/cancelled")
    }
  })

  it("prints at most 110 columns and no colours if stdout is not a terminal", async () => {
    const { stdout } = await tour()
    expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(110)
    expect(stdout).not.toContain("\u001b")
    expect(stdout).not.toMatch(/ $/m)
  })
})
