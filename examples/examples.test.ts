import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import * as kit from "./testKit.ts"

const run = promisify(execFile)
const node = (file: string) => run(process.execPath, ["--conditions=@skein/source", file], { cwd: root })
const root = join(import.meta.dirname, "..")
const source = (file: string) => readFile(new URL(file, import.meta.url), "utf8")
const npm = "\"npm\", args: [\"run\", \"-s\", \"hello\"]"
const lines = (text: string): number => text.split("\n").filter((line) => line.trim() !== "").length

describe("hello", () => {
  it("the client calls the server, a child process", async () => {
    const { stdout } = await node("examples/hello/client.ts")
    expect(stdout).toContain("Hello, Ada!")
  })

  it("the server has at most 11 lines and the client at most 8", async () => {
    expect(lines(await source("hello/server.ts"))).toBeLessThanOrEqual(11)
    expect(lines(await source("hello/client.ts"))).toBeLessThanOrEqual(8)
  })

  it.live("over HTTP the server has at most 13 lines and checks the Origin header, and the client has at most 6", () =>
    Effect.gen(function*() {
      const program = yield* Effect.promise(() => source("hello/httpServer.ts"))
      expect(lines(program)).toBeLessThanOrEqual(13)
      const client = yield* Effect.promise(() => source("hello/httpClient.ts"))
      expect(lines(client)).toBeLessThanOrEqual(6)
      const folder = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(root, "scratchpad", "hello-"))),
        (folder) => Effect.promise(() => rm(folder, { recursive: true }))
      )
      // The same program on a free port.
      const file = join(folder, "httpServer.ts")
      yield* Effect.promise(() => writeFile(file, program.replace("port: 3000", "port: 0")))
      const server = yield* kit.start({ command: process.execPath, args: ["--conditions=@skein/source", file] })
      const url = yield* kit.urlOf(server)
      const ask = yield* kit.connect(url, "2025-11-25")
      const { result } = yield* ask("tools/call", { name: "greet", arguments: { name: "Ada" } })
      expect(result.content).toEqual([{ type: "text", text: "Hello, Ada!" }])
      const forbidden = yield* Effect.promise(() => fetch(url, { headers: { origin: "https://evil.example.com" } }))
      expect(forbidden.status).toBe(403)
      expect(client).toContain("\"http://127.0.0.1:3000/mcp\"")
      const caller = join(folder, "httpClient.ts")
      yield* Effect.promise(() => writeFile(caller, client.replace("http://127.0.0.1:3000/mcp", url)))
      const { stdout } = yield* Effect.promise(() => node(caller))
      expect(stdout).toContain("Hello, Ada!")
    }))

  it("five added lines protect the server", async () => {
    const before = (await source("hello/httpServer.ts")).split("\n")
    const after = (await source("hello/protectedServer.ts")).replace(", protection }", " }").split("\n")
    expect(after.filter((line) => !before.includes(line)).length).toBe(5)
    expect(before.filter((line) => !after.includes(line))).toEqual([])
  })

  it("the READMEs of the packages quote the programs", async () => {
    expect(await source("../packages/server/README.md")).toContain(await source("hello/server.ts"))
    const client = (await source("../packages/client/README.md")).replace("\"node\", args: [\"server.mjs\"]", npm)
    expect(client).toContain(await source("hello/client.ts"))
    expect(client).toContain(await source("hello/httpClient.ts"))
    const guides = (await Promise.all(
      ["signingIn.ts", "protected.ts", "../../examples/hello/protectedServer.ts"].map((file) =>
        source(`../docs/programs/${file}`)
      )
    )).join("\n")
    const blocks = Array.from(
      (await source("../packages/auth/README.md")).matchAll(/```ts\n([^]*?)```/g),
      ([, block]) => block!.trim()
    )
    expect(blocks.slice(0, 3).filter((block) => !guides.includes(block))).toEqual([])
  })
})

describe("README", () => {
  it("shows a program of async functions and then a part of one with effects, which are tested", async () => {
    const programs = ["quickStdioAsync", "quickStdio"].map((name) => source(`../docs/programs/${name}.ts`))
    const tested = (await Promise.all(programs)).map((text) => text.replaceAll(/^\/\/ #.*\n/gm, ""))
    for (const [page, count] of [["../README.md", 2], ["../docs/site/home.md", 1]] as const) {
      const blocks = Array.from((await source(page)).matchAll(/```ts\n([^]*?)```/g), ([, block]) => block!)
      expect(blocks.length).toBe(count)
      for (const [at, block] of blocks.entries()) expect(tested[at]).toContain(block)
    }
  })

  it("has the numbers of the pages that it links", async () => {
    const rows = Array.from((await source("../README.md")).matchAll(/^> - \*\*(.+)\((.+)\)$/gm))
    expect(rows.length).toBe(4)
    for (const [, row = "", page = ""] of rows) {
      const text = await source(`../${page}`)
      const numbers = row.replaceAll(/SDK v2|\d{4}-\d\d-\d\d/g, "").match(/\d+\/\d+|\d[\d,]*/g) ?? []
      expect(numbers.length).toBeGreaterThan(0)
      expect(numbers.filter((number) => !new RegExp(`(?<![\\d,])${number}(?![\\d,])`).test(text))).toEqual([])
    }
  })

  it("has at most 120 lines", async () => {
    expect((await source("../README.md")).trimEnd().split("\n").length).toBeLessThanOrEqual(120)
  })
})
