/** Pools of configured servers: real files, processes and sockets, in real time. */
import { assert, describe, it } from "@effect/vitest"
import * as LegacySse from "@skein/server/LegacySse"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { mkdtempSync, realpathSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Client from "../../src/Client.ts"
import * as ClientPool from "../../src/ClientPool.ts"
import * as NodeConfig from "../../src/NodeConfig.ts"
import type { Json } from "../http/support/connection.ts"
import { toolServer } from "./toolServer.ts"

const server = (tool: string, more: object = {}, ...args: ReadonlyArray<string>) => ({
  command: process.execPath,
  args: ["-e", toolServer(), tool, ...args],
  ...more
})

interface Facts {
  readonly pid: number
  readonly args: ReadonlyArray<string>
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

const factsOf = (pool: ClientPool.ClientPool["Service"], name: string, tool = name) =>
  Effect.map(
    Effect.flatMap(pool.client(name), ({ callTool }) => callTool(tool)),
    ({ structuredContent }) => structuredContent as unknown as Facts
  )

const runs = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const directory = Effect.acquireRelease(
  Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "skein-config-")))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

/** A file with a configuration. It is replaced in one step, as editors do. */
const configFile = Effect.map(directory, (folder) => {
  const path = join(folder, "mcp.json")
  const write = (config: object | string): void => {
    writeFileSync(`${path}.new`, typeof config === "string" ? config : JSON.stringify(config))
    renameSync(`${path}.new`, path)
  }
  return { folder, path, write }
})

const names = (pool: ClientPool.ClientPool["Service"]) => pool.entries.map(({ name }) => name)

describe("a pool from a configuration", () => {
  it.live("starts the valid entries of a file with their arguments, environment and folder, and reports the others", () =>
    Effect.gen(function*() {
      const { folder, path, write } = yield* configFile
      writeFileSync(join(folder, ".env"), "A=from the file\nB='from the file'\n")
      const large = join(folder, ".large")
      writeFileSync(large, "A=")
      truncateSync(large, 16 * 1024 * 1024 + 1)
      write(`{
        // As a person writes it.
        "inputs": [{ "id": "c", "type": "promptString", "default": "asked" }],
        "servers": {
          "a": ${
        JSON.stringify(server(
          "a",
          {
            env: { B: "${GIVEN}", C: "${input:c}" },
            envFile: ".env",
            cwd: "."
          },
          "${GIVEN}",
          "a b;$HOME"
        ))
      },
          "noCommand": { "args": [] },
          "missing": { "command": "\${NOWHERE}" },
          "noEnvFile": { "command": "x", "envFile": "nowhere" },
          "endlessEnvFile": { "command": "x", "envFile": "/dev/zero" },
          "largeEnvFile": { "command": "x", "envFile": ".large" },
          "off": { "disabled": true, "command": "x" },
          "gone": { "command": "/nowhere/server" },
        },
      }`)
      const pool = yield* ClientPool.fromConfig(
        NodeConfig.file(path, { env: { GIVEN: "given" }, workspaceFolder: folder })
      )
      assert.deepInclude(yield* factsOf(pool, "a"), {
        args: ["a", "given", "a b;$HOME"],
        cwd: folder,
        env: { A: "from the file", B: "given", C: "asked" }
      })
      assert.deepStrictEqual(names(pool), ["a", "gone"])
      assert.strictEqual((yield* Effect.flip(pool.client("gone"))).reason._tag, "ConnectionFailed")
      const { disabled, problems, servers } = pool.config
      assert.deepStrictEqual(
        problems.map(({ reason }) => [reason._tag, "server" in reason && reason.server]),
        [["InvalidEntry", "noCommand"], ["MissingVariable", "missing"]].concat(
          ["noEnvFile", "endlessEnvFile", "largeEnvFile"].map((name) => ["InvalidEntry", name])
        )
      )
      assert.deepStrictEqual([disabled, [...servers.keys()]], [["off"], ["a", "gone"]])
    }).pipe(Effect.scoped))

  it.live("reaches HTTP servers with the configured headers, and names them in failures", () =>
    Effect.gen(function*() {
      const http = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => hit.respond(404)))
      const pool = yield* ClientPool.fromConfig(
        NodeConfig.object(
          { mcpServers: { a: { url: http.url.href, headers: { Authorization: "Bearer ${TOKEN}" } } } },
          { env: { TOKEN: "t" }, client: () => ({ revisions: ["2025-11-25"] }) }
        )
      )
      yield* pool.client("a")
      assert.deepStrictEqual(new Set(http.exchanges.map(({ headers }) => headers.authorization)), new Set(["Bearer t"]))
    }).pipe(Effect.scoped))

  it.live("opens a server of the type sse over HTTP+SSE, with its first request", () =>
    Effect.gen(function*() {
      const tools = Tool.layer(Tool.make("greet"), () => Effect.succeed("Hello"))
      const context = yield* Layer.build(Layer.provide(
        NodeHttp.layer({ port: 0, shutdownTimeout: 0, legacySse: LegacySse.make() }),
        McpServer.layer({ name: "old", version: "1.0.0" }, tools)
      ))
      const url = new URL("/sse", Context.get(context, NodeHttp.Server).url).href
      const pool = yield* ClientPool.fromConfig(NodeConfig.object({ mcpServers: { a: { type: "sse", url } } }))
      const client = yield* pool.client("a")
      assert.deepStrictEqual((yield* client.callTool("greet")).content, [{ type: "text", text: "Hello" }])
      assert.strictEqual(client.serverProfile?.httpMode, "sse")
    }).pipe(Effect.scoped))

  it.live("reload keeps unchanged servers, replaces changed ones, and closes removed ones", () =>
    Effect.gen(function*() {
      const { path, write } = yield* configFile
      write({
        mcpServers: { same: server("same"), edited: server("edited"), gone: server("gone"), broken: server("broken") }
      })
      const pool = yield* ClientPool.fromConfig(NodeConfig.file(path))
      yield* pool.add(
        "mine",
        (yield* NodeConfig.object({ mcpServers: { mine: server("mine") } }).read).servers.get("mine")!.server
      )
      const before: Record<string, number> = {}
      for (const name of names(pool)) before[name] = (yield* factsOf(pool, name)).pid
      write({
        mcpServers: {
          added: server("added"),
          edited: server("edited", { env: { A: "2" } }),
          broken: { command: [] },
          // The order of members, and members that are not read, make no difference.
          same: { autoApprove: [], args: server("same").args, command: process.execPath },
          mine: server("other")
        }
      })
      const { problems, ...reload } = yield* pool.reload
      assert.deepStrictEqual(reload, {
        added: ["added"],
        changed: ["edited"],
        removed: ["gone"],
        unchanged: ["same", "broken"]
      })
      assert.deepStrictEqual(problems.map(({ reason }) => reason._tag), ["InvalidEntry", "DuplicateName"])
      assert.deepStrictEqual(names(pool).toSorted(), ["added", "broken", "edited", "mine", "same"])
      for (const name of ["same", "broken", "mine"]) {
        assert.strictEqual((yield* factsOf(pool, name)).pid, before[name], name)
      }
      const edited = yield* factsOf(pool, "edited")
      assert.deepStrictEqual([edited.env["A"], edited.pid === before["edited"]], ["2", false])
      assert.deepStrictEqual([runs(before["edited"]!), runs(before["gone"]!)], [false, false])
      assert.strictEqual((yield* factsOf(pool, "added")).args[0], "added")

      write("{ \"mcpServers\": {")
      assert.strictEqual((yield* Effect.flip(pool.reload)).reason._tag, "InvalidConfig")
      rmSync(path)
      assert.strictEqual((yield* Effect.flip(pool.reload)).reason._tag, "ConfigUnreadable")
      assert.strictEqual((yield* factsOf(pool, "same")).pid, before["same"])
    }).pipe(Effect.scoped))

  it.live("watchInterval applies changes of the file, and keeps the servers while the file is invalid", () =>
    Effect.gen(function*() {
      const { path, write } = yield* configFile
      write({ mcpServers: { a: server("a") } })
      const pool = yield* ClientPool.fromConfig(NodeConfig.file(path), { watchInterval: "20 millis" })
      const { pid } = yield* factsOf(pool, "a")
      const until = (wanted: ReadonlyArray<string>) =>
        Stream.runHead(Stream.filter(pool.changes, () => names(pool).join() === wanted.join()))
      write("not JSON")
      yield* Effect.sleep("60 millis")
      const added = yield* Effect.forkChild(until(["a", "b"]), { startImmediately: true })
      write({ mcpServers: { a: server("a"), b: server("b") } })
      yield* Fiber.join(added)
      assert.strictEqual((yield* factsOf(pool, "a")).pid, pid)
      write({ mcpServers: { b: server("b") } })
      yield* until(["b"])
    }).pipe(Effect.scoped))

  it.live("watchInterval continues after a function of the host has thrown, and starts an entry that is included later", () =>
    Effect.gen(function*() {
      const decisions: Array<boolean> = []
      const decide = (): boolean => {
        const decision = decisions.shift()
        if (decision === undefined) throw new Error("a bug of the host")
        return decision
      }
      decisions.push(false)
      const pool = yield* ClientPool.fromConfig(NodeConfig.object({ mcpServers: { a: server("a") } }), {
        include: decide,
        watchInterval: "10 millis"
      })
      assert.deepStrictEqual([names(pool), pool.config.excluded.map(({ name }) => name)], [[], ["a"]])
      const added = yield* Effect.forkChild(
        Stream.runHead(Stream.filter(pool.changes, () => names(pool).includes("a"))),
        { startImmediately: true }
      )
      yield* Effect.sleep("50 millis")
      decisions.push(...Array.from({ length: 10_000 }, () => true))
      yield* Fiber.join(added)
      assert.deepStrictEqual(pool.config.excluded, [])
      yield* factsOf(pool, "a")
    }).pipe(Effect.scoped))

  it.live("passes a timeout of the host for each entry", () =>
    Effect.gen(function*() {
      const source = NodeConfig.object({ mcpServers: { a: server("a"), b: { url: "https://example.com" } } }, {
        timeout: ({ type }) => type === "stdio" ? "5 minutes" : undefined
      })
      const { servers } = yield* source.read
      assert.deepStrictEqual(Array.from(servers.values(), ({ server }) => server.timeout), ["5 minutes", undefined])
    }))

  it.live("fails for a file that is missing, a folder, or larger than 16 MiB; an optional file may be missing", () =>
    Effect.gen(function*() {
      const { folder, path, write } = yield* configFile
      const tagOf = (source: ClientPool.ConfigSource) =>
        Effect.map(Effect.flip(ClientPool.fromConfig(source)), ({ reason }) => reason._tag)
      assert.strictEqual(yield* tagOf(NodeConfig.file(path)), "ConfigUnreadable")
      assert.strictEqual(yield* tagOf(NodeConfig.file(folder)), "ConfigUnreadable")
      assert.deepStrictEqual(names(yield* ClientPool.fromConfig(NodeConfig.file(path, { optional: true }))), [])
      const text = JSON.stringify({ mcpServers: {} }).padEnd(16 * 1024 * 1024)
      writeFileSync(path, text)
      assert.deepStrictEqual(names(yield* ClientPool.fromConfig(NodeConfig.file(path))), [])
      writeFileSync(path, `${text} `)
      assert.strictEqual(yield* tagOf(NodeConfig.file(path)), "ConfigUnreadable")
      write({})
      assert.strictEqual(yield* tagOf(NodeConfig.file(path)), "InvalidConfig")
    }).pipe(Effect.scoped))

  it.live("joins several sources, of which a later one replaces or disables the entries of an earlier one", () =>
    Effect.gen(function*() {
      const user = NodeConfig.object({ mcpServers: { a: server("a"), b: server("b"), c: server("c"), d: server("d") } })
      const project = NodeConfig.object({
        mcpServers: { a: server("a", { env: { A: "project" } }), b: { disabled: true }, d: {} }
      })
      const pool = yield* ClientPool.fromConfig([user, project], { include: (name) => name !== "c" })
      assert.deepStrictEqual(names(pool), ["a"])
      assert.strictEqual((yield* factsOf(pool, "a")).env["A"], "project")
      assert.deepStrictEqual([pool.config.disabled, pool.config.problems.length], [["b"], 1])
    }).pipe(Effect.scoped))

  it.live.each(["missing", "not JSON", "{}"])(
    "leaves out one of several files that cannot be used: %s",
    (text) =>
      Effect.gen(function*() {
        const { path, write } = yield* configFile
        if (text !== "missing") write(text)
        const logged: Array<string> = []
        const logger = Logger.make(({ message }) => void logged.push(String(message)))
        const sources = [NodeConfig.file(path), NodeConfig.object({ mcpServers: { b: server("b") } })]
        const tag = text === "missing" ? "ConfigUnreadable" : "InvalidConfig"
        yield* Effect.gen(function*() {
          const pool = yield* ClientPool.fromConfig(sources)
          assert.deepStrictEqual([names(pool), pool.config.problems.map(({ reason }) => reason._tag)], [["b"], [tag]])
          const { pid } = yield* factsOf(pool, "b")
          yield* pool.reload
          assert.deepStrictEqual(logged, [
            `${
              pool.config.problems[0]!.message
            }. The servers of the other configurations run. Correct it, or make this ` +
            "an error with the option onInvalidConfig"
          ])
          write({ mcpServers: { a: server("a"), b: {} } })
          assert.deepStrictEqual((yield* pool.reload).added, ["a"])
          const a = yield* factsOf(pool, "a")
          // Its servers stay while the file cannot be used again.
          write("not JSON")
          assert.deepStrictEqual((yield* pool.reload).unchanged.toSorted(), ["a", "b"])
          assert.deepStrictEqual([(yield* factsOf(pool, "a")).pid, (yield* factsOf(pool, "b")).pid], [a.pid, pid])
          write({ mcpServers: {} })
          assert.deepStrictEqual((yield* pool.reload).removed, ["a"])
        }).pipe(Effect.provide(Logger.layer([logger])))
      }).pipe(Effect.scoped)
  )

  it.live("fails for several files that cannot be used, and for a file or an entry with onInvalidConfig: \"fail\"", () =>
    Effect.gen(function*() {
      const { folder, path, write } = yield* configFile
      const good = NodeConfig.object({ mcpServers: { a: server("a") } })
      const fail = { onInvalidConfig: "fail" } as const
      const tagOf = (sources: ReadonlyArray<ClientPool.ConfigSource>, options: ClientPool.ConfigOptions = {}) =>
        Effect.map(Effect.flip(ClientPool.fromConfig(sources, options)), ({ reason }) => reason._tag)
      assert.strictEqual(yield* tagOf([NodeConfig.file(path), NodeConfig.file(folder)]), "ConfigUnreadable")
      assert.strictEqual(yield* tagOf([good, NodeConfig.file(path)], fail), "ConfigUnreadable")
      assert.strictEqual(yield* tagOf([good, NodeConfig.object({ mcpServers: { b: {} } })], fail), "InvalidEntry")
      write({ mcpServers: {} })
      const pool = yield* ClientPool.fromConfig([good, NodeConfig.file(path)], fail)
      write("not JSON")
      assert.strictEqual((yield* Effect.flip(pool.reload)).reason._tag, "InvalidConfig")
      assert.deepStrictEqual(names(pool), ["a"])
    }).pipe(Effect.scoped))

  it.live("reports the entries beyond maxServers, and runs the others", () =>
    Effect.gen(function*() {
      const source = NodeConfig.object({ mcpServers: { a: server("a"), b: server("b") } })
      const pool = yield* ClientPool.fromConfig(source, { maxServers: 1 })
      assert.deepStrictEqual(names(pool), ["a"])
      assert.deepStrictEqual(pool.config.problems.map(({ reason }) => reason._tag), ["LimitExceeded"])
    }).pipe(Effect.scoped))

  it.live("asks for an input once, also when the configuration is read again", () =>
    Effect.gen(function*() {
      let asked = 0
      const source = NodeConfig.object({
        inputs: [{ id: "a", type: "promptString" }],
        servers: { a: server("a", { env: { A: "${input:a}" } }) }
      }, { input: () => Effect.sync(() => `answer ${++asked}`) })
      const pool = yield* ClientPool.fromConfig(source)
      assert.deepStrictEqual((yield* pool.reload).unchanged, ["a"])
      assert.strictEqual((yield* factsOf(pool, "a")).env["A"], "answer 1")
    }).pipe(Effect.scoped))

  it.live("gives a toolkit the tools of five processes while a sixth hangs, and a seventh entry is invalid", () =>
    Effect.gen(function*() {
      const good = ["a", "b", "c", "d", "e"]
      const pool = yield* ClientPool.fromConfig(NodeConfig.object({
        mcpServers: {
          hangs: { command: process.execPath, args: ["-e", "process.stdin.resume()"] },
          invalid: { command: "${NOWHERE}" },
          ...Object.fromEntries(good.map((name) => [name, server(name)]))
        }
      }))
      const grown = Stream.filter(
        Stream.mapEffect(pool.changes, () => Client.toolkit(pool, { readyTimeout: 0 })),
        ({ tools }) => Object.keys(tools).length === good.length
      )
      const { pending, tools } = Option.getOrThrow(yield* Stream.runHead(grown))
      assert.deepStrictEqual(Object.keys(tools), good.map((name) => `${name}_${name}`))
      assert.deepStrictEqual(pending, ["hangs"])
    }).pipe(Effect.scoped))

  it.live("lists the tools of each process", () =>
    Effect.gen(function*() {
      const pool = yield* ClientPool.fromConfig(NodeConfig.object({ mcpServers: { a: server("x"), b: server("y") } }))
      const listed = (yield* pool.tools).map(({ result }) => Result.getOrThrow(result).map(({ name }) => name))
      assert.deepStrictEqual(listed, [["x"], ["y"]])
    }).pipe(Effect.scoped))

  for (const [option, of] of [["servers", "name"], ["input", "input"]]) {
    it(`refuses a value for the option ${option}, which is a function`, () => {
      assert.throws(
        () => NodeConfig.object({}, { [option!]: ["a"] } as NodeConfig.Options),
        `The option ${option} of a configuration is a function of the ${of}: ${option}: (${of}) => …`
      )
    })
  }

  for (const option of ["client", "http", "stdio", "timeout"]) {
    it(`refuses a value for the option ${option}, which is a function`, () => {
      assert.throws(
        () => NodeConfig.object({}, { [option]: {} } as NodeConfig.Options),
        `The option ${option} of a configuration is a function of the entry: ${option}: (entry) => …`
      )
    })
  }

  it.effect("names the problem of an entry whose client is wanted", () =>
    Effect.gen(function*() {
      const pool = yield* ClientPool.fromConfig(
        NodeConfig.object({ mcpServers: { vars: { command: "x", env: { A: "${NOWHERE}" } } } }, { env: {} })
      )
      const error = yield* Effect.flip(pool.client("vars"))
      assert.include(error.message, "The pool has no server named vars: The server \"vars\" in")
      assert.include(error.message, "uses ${NOWHERE} in env.A, which has no value: set the variable")
    }).pipe(Effect.scoped))
})
