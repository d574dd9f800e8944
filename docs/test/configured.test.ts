/** The programs of `configured-servers.md`, run with real files and processes. */
import { describe, expect, it } from "@effect/vitest"
import * as ClientPool from "@skein/client/ClientPool"
import * as NodeConfig from "@skein/client/NodeConfig"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Configured from "../programs/configured.ts"
import { Hello } from "../programs/hello.ts"
import { hello, inMemory, serving } from "./kit.ts"
import { start } from "./runtime.ts"

const workspace = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "skein-guide-"))
    mkdirSync(join(folder, ".vscode"))
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

const Files = McpServer.layer(
  { name: "files", version: "1.0.0", instructions: "Paths are absolute." },
  Tool.layer(Tool.make("write", { input: { path: Schema.String } }), () => Effect.succeed("Written")),
  Tool.layer(Tool.make("delete"), () => Effect.succeed("Deleted")),
  Tool.layer(Tool.make("q", { description: "Queries" }), () => Effect.succeed("Nothing"))
)

/** A source with servers in memory. */
const sourceOf = (servers: Readonly<Record<string, ClientPool.Server>>): ClientPool.ConfigSource => ({
  name: "memory",
  read: Effect.sync(() => ({
    servers: new Map(
      Object.entries(servers).map(([name, server]) => {
        const entry = { type: "http", name, url: `https://${name}.example.com`, headers: {}, raw: {} } as const
        return [name, { entry, key: name, server }]
      })
    ),
    disabled: [],
    problems: []
  }))
})

describe("programs/configured.ts", () => {
  it.live("opens the servers of a workspace, with the answers of the user, and follows the file", () =>
    Effect.gen(function*() {
      const folder = yield* workspace
      const file = join(folder, ".vscode/mcp.json")
      const config = {
        inputs: [{ id: "name", type: "promptString", description: "Your name" }],
        servers: {
          hello: { type: "stdio", command: process.execPath, args: hello, env: { NAME: "${input:name}" } },
          broken: { type: "stdio" },
          token: { url: "https://example.com/${NO_SUCH_VARIABLE}" }
        }
      }
      writeFileSync(file, `// The servers of this project.\n${JSON.stringify(config)}`)
      const asked: Array<string> = []
      const pool = yield* Configured.open(
        join(folder, "none.json"),
        folder,
        (question) => Effect.sync(() => (asked.push(question), "Ada"))
      )
      const { content } = yield* Effect.flatMap(
        pool.client("hello"),
        ({ callTool }) => callTool("greet", { name: "Ada" })
      )
      expect(content).toMatchObject([{ text: "Hello, Ada!" }])
      expect(asked).toEqual(["Your name"])
      expect(pool.config.problems.map(Configured.advice)).toEqual([
        expect.stringMatching(/^broken is not started: The server "broken" in .* has no command$/),
        "token needs NO_SUCH_VARIABLE"
      ])
      const gone = yield* Effect.forkChild(
        Stream.runHead(Stream.filter(pool.changes, () => pool.entries.length === 0)),
        { startImmediately: true }
      )
      writeFileSync(file, JSON.stringify({ servers: {} }))
      yield* Fiber.join(gone)
    }).pipe(Effect.scoped))

  it.live("gives each server the options of its entry", () =>
    Effect.gen(function*() {
      const folder = yield* workspace
      const file = join(folder, ".vscode/mcp.json")
      const { child, url } = yield* Effect.promise(() => start("vault"))
      yield* Effect.addFinalizer(() => Effect.sync(() => void child.kill("SIGKILL")))
      const servers = { hello: { command: process.execPath, args: hello }, vault: { url } }
      writeFileSync(file, JSON.stringify({ servers }))
      const asked: Array<string> = []
      const pool = yield* Configured.withOptions(file, (server) => {
        asked.push(server)
        return Redacted.make("ada")
      })
      const vault = yield* pool.client("vault")
      expect((yield* vault.callTool("whoami")).content).toMatchObject([{ text: "ada" }])
      expect((yield* pool.client("hello")).server?.name).toBe("hello")
      expect(asked).toEqual(["vault"])
    }).pipe(Effect.scoped))

  it.live("reads an object", () =>
    Effect.gen(function*() {
      const pool = yield* ClientPool.fromConfig(
        NodeConfig.object({ mcpServers: { hello: { command: process.execPath, args: hello } } })
      )
      expect((yield* pool.client("hello")).server?.name).toBe("hello")
    }).pipe(Effect.scoped))

  it.live("asks before it starts a program", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      const entry = { command: process.execPath, args: hello }
      const pool = yield* Configured.asking(
        NodeConfig.object({ mcpServers: { hello: entry, evil: { command: "evil", args: ["now"] } } }),
        (question) => Effect.sync(() => (asked.push(question), question.startsWith("Start hello?")))
      )
      expect(asked).toEqual([`Start hello? ${[process.execPath, ...hello].join(" ")}`, "Start evil? evil now"])
      expect(pool.entries.map(({ name }) => name)).toEqual(["hello"])
      expect(pool.config.excluded.map(({ name }) => name)).toEqual(["evil"])
      expect((yield* pool.client("hello")).server?.name).toBe("hello")
    }).pipe(Effect.scoped))

  it.effect("logs each call of each server, and denies one", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const pool = yield* Configured.guarded(
        sourceOf({ files: { transport: yield* inMemory(Files) }, hello: { transport: yield* inMemory(Hello) } }),
        (line) => Effect.sync(() => void lines.push(line))
      )
      yield* Effect.flatMap(pool.client("hello"), ({ callTool }) => callTool("greet", { name: "Ada" }))
      const files = yield* pool.client("files")
      yield* files.callTool("q")
      expect((yield* Effect.flip(files.callTool("delete"))).reason._tag).toBe("Denied")
      expect(lines).toEqual(["hello greet: Success", "files q: Success", "files delete: Failure"])
    }))

  it.effect("redacts results, and answers a repeated call from a cache", () =>
    Effect.gen(function*() {
      let calls = 0
      const rates = Tool.layer(
        Tool.make("exchange_rates", { input: { from: Schema.String } }),
        ({ from }) => Effect.sync(() => `${from} ${++calls} for the key abc123`)
      )
      const pool = yield* Configured.rewriting(
        sourceOf({
          rates: { transport: yield* inMemory(McpServer.layer({ name: "rates", version: "1.0.0" }, rates)) }
        }),
        "abc123"
      )
      const { callTool } = yield* pool.client("rates")
      const texts: Array<unknown> = []
      for (const from of ["EUR", "EUR", "USD"]) {
        texts.push(
          ...(yield* callTool("exchange_rates", { from })).content.map((block) => "text" in block && block.text)
        )
      }
      expect(texts).toEqual([1, 1, 2].map((call, at) => `${at < 2 ? "EUR" : "USD"} ${call} for the key [redacted]`))
    }))

  it.effect("gives a model the instructions and the tools that are ready, and asks before it writes elsewhere", () =>
    Effect.gen(function*() {
      const { serve } = yield* serving(Files)
      const pool = yield* ClientPool.make({
        files: { transport: InMemoryTransport.transport(serve) },
        untrusted: { transport: yield* inMemory(Hello) }
      })
      yield* pool.client("files")
      const answered = (path: string) => {
        const seen: Array<unknown> = []
        const model = LanguageModel.make({
          generateText: ({ prompt, tools }) => {
            seen.push(prompt.content[0]?.content, tools.map(({ name }) => name))
            const call = { type: "tool-call", id: "1", name: "files_write", params: { path } } as const
            const usage = { inputTokens: {}, outputTokens: {} }
            return Effect.succeed<Array<Response.PartEncoded>>([call, { type: "finish", reason: "tool-calls", usage }])
          },
          streamText: () => Stream.empty
        })
        return Effect.map(
          Effect.provideServiceEffect(Configured.answer(pool, "Write it"), LanguageModel.LanguageModel, model),
          ({ content }) => ({ seen, types: content.map(({ type }) => type) })
        )
      }
      const inTmp = yield* answered("/tmp/a")
      expect(inTmp.seen).toEqual([
        "Answer briefly.\n\nInstructions of the server \"files\" for its tools:\nPaths are absolute.",
        ["files_write", "files_delete", "search_notes"]
      ])
      expect(inTmp.types).toContain("tool-result")
      expect((yield* answered("/etc/passwd")).types).toContain("tool-approval-request")
    }))

  it.effect("shows the state of each server, first and after each change", () =>
    Effect.gen(function*() {
      const pool = yield* ClientPool.make({ hello: { transport: yield* inMemory(Hello) } })
      yield* pool.client("hello")
      const lines: Array<string> = []
      const following = yield* Effect.forkChild(
        Configured.follow(pool, (line) => Effect.sync(() => void lines.push(line))),
        { startImmediately: true }
      )
      for (let turn = 0; turn < 50; turn++) yield* Effect.yieldNow
      expect(lines[0]).toBe("hello: Open")
      yield* Fiber.interrupt(following)
    }))
})
