/** `skein gateway`, as a process: in front of configurations, a command and a URL, over HTTP and over stdio. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as NodeHttp from "@skein/client/NodeHttp"
import * as Stdio from "@skein/client/Stdio"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const root = join(import.meta.dirname, "../../../..")
const source = ["--conditions=@skein/source", "--disable-warning=ExperimentalWarning"]
const skein = [...source, join(root, "packages/cli/src/bin/skein.ts")]
const hello = { command: process.execPath, args: [...source, join(root, "examples/hello/server.ts")] }

/** A configuration in a folder that the scope removes. */
const configuration = (servers: object): Effect.Effect<
  { readonly file: string; readonly write: (servers: object) => void },
  never,
  Scope.Scope
> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-gateway-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    ),
    (folder) => {
      const file = join(folder, "mcp.json")
      const write = (servers: object) => writeFileSync(file, JSON.stringify({ mcpServers: servers }))
      write(servers)
      return { file, write }
    }
  )

/** Starts a gateway, and waits until its stderr has a text. It is ended with SIGTERM. */
const start = (...args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const child = spawn(process.execPath, [...skein, "gateway", ...args], { stdio: ["ignore", "inherit", "pipe"] })
      let stderr = ""
      const ended = new Promise<number | null>((resolve) => child.once("exit", resolve))
      child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()))
      const url = async (): Promise<string> => {
        await expect.poll(() => stderr, { timeout: 60_000 }).toContain("The gateway listens on ")
        return /The gateway listens on (\S+)/.exec(stderr)![1]!
      }
      return { child, ended, stderr: () => stderr, url }
    }),
    ({ child, ended }) =>
      Effect.promise(async () => {
        child.kill()
        await ended
      })
  )

const text = (client: Client.Client, name: string) =>
  Effect.map(
    client.callTool(name, { name: "Ada" }),
    ({ content }) => (content[0] as { readonly text: string }).text
  )

const until = <E, R>(condition: Effect.Effect<boolean, E, R>): Effect.Effect<void, E, R> =>
  Effect.gen(function*() {
    while (!(yield* condition)) yield* Effect.sleep(50)
  })

describe("skein gateway", () => {
  it.live("serves a configuration over HTTP, and applies its changes without ending a session", () =>
    Effect.gen(function*() {
      const { file, write } = yield* configuration({ one: hello, gone: { command: "/does/not/exist" } })
      const gateway = yield* start("--port", "0", file)
      const url = yield* Effect.promise(gateway.url)
      expect(gateway.stderr()).toContain("one: 1 tool, 0 resources, 0 prompts")
      expect(gateway.stderr()).toMatch(/gone: \w+, Cannot start "\/does\/not\/exist": the command was not found\n/)
      const client = yield* Client.make(NodeHttp.transport({ url }), { revisions: ["2025-11-25"], cache: false })
      expect(yield* text(client, "one_greet")).toBe("Hello, Ada!")
      // A file that is not JSON changes nothing.
      writeFileSync(file, "{ \"mcpServers\": ")
      yield* until(Effect.sync(() => gateway.stderr().includes("The servers stay as they are")))
      expect(yield* text(client, "one_greet")).toBe("Hello, Ada!")
      write({ one: hello, two: { ...hello, gateway: { prefix: "second" } } })
      yield* until(Effect.map(client.listTools(), (tools) => tools.some(({ name }) => name === "second_greet")))
      expect(yield* text(client, "second_greet")).toBe("Hello, Ada!")
      write({ two: hello })
      yield* until(Effect.map(client.listTools(), (tools) => tools.every(({ name }) => name === "two_greet")))
    }))

  it.live("serves a command over HTTP, and a URL over stdio, under the names of the server", () =>
    Effect.gen(function*() {
      const gateway = yield* start("--port", "0", "--", hello.command, ...hello.args)
      const url = yield* Effect.promise(gateway.url)
      const http = yield* Client.make(NodeHttp.transport({ url }))
      expect(yield* text(http, "greet")).toBe("Hello, Ada!")
      const stdio = yield* Client.make(
        Stdio.transport({ command: process.execPath, args: [...skein, "gateway", "--stdio", url] })
      )
      expect(yield* text(stdio, "greet")).toBe("Hello, Ada!")
    }))

  it.live("is ready only while its required servers are connected", () =>
    Effect.gen(function*() {
      const { file, write } = yield* configuration({
        gone: { command: "/none", gateway: { required: true } },
        one: hello
      })
      const gateway = yield* start("--port", "0", file)
      const url = yield* Effect.promise(gateway.url)
      const ready = Effect.promise(async () => (await fetch(new URL("/readyz", url))).status)
      expect(yield* ready).toBe(503)
      write({ one: hello })
      yield* until(Effect.map(ready, (status) => status === 200))
    }))

  it.live("refuses a configuration without servers, and ends with 2", () =>
    Effect.gen(function*() {
      const { file } = yield* configuration({})
      for (
        const [args, problem] of [
          [[file], "has no servers"],
          [["/does/not/exist.json"], "/does/not/exist.json cannot be read"],
          [[], "name the configurations"],
          [["--stdio", "--port", "1", file], "--port and --host cannot be used with --stdio"]
        ] as const
      ) {
        const gateway = yield* start(...args)
        expect(yield* Effect.promise(() => gateway.ended)).toBe(2)
        expect(gateway.stderr()).toContain(problem)
      }
    }))
})
