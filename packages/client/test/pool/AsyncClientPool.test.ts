/** A pool of clients with promises: servers in memory in all revisions, and real processes. */
import { afterEach, describe, expect, it, vi } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import type { Transport } from "@skein/runtime/Connection"
import { OpenFailed, TransportError } from "@skein/runtime/TransportError"
import { AsyncServer } from "@skein/server/AsyncServer"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as Effect from "effect/Effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { z } from "zod"
import { AsyncClientPool, type Entry } from "../../src/AsyncClientPool.ts"
import * as NodeConfig from "../../src/NodeConfig.ts"
import * as Stdio from "../../src/Stdio.ts"
import { toolServer } from "./toolServer.ts"

/** Unhandled rejections, which would end a process. */
const unhandled: Array<unknown> = []
process.on("unhandledRejection", (error) => void unhandled.push(error))
afterEach(async () => {
  await new Promise(setImmediate)
  expect(unhandled.splice(0)).toEqual([])
})

const failing: Transport = {
  connect: Effect.fail(new TransportError({ reason: new OpenFailed({ message: "The command was not found" }) }))
}

const files = () =>
  new AsyncServer({ name: "files", version: "1.0.0", instructions: "Read before you write." })
    .tool("read", { description: "Reads.", input: z.object({ path: z.string() }) }, async ({ path }, { progress }) => {
      await progress({ progress: 1 })
      return `content of ${path}`
    })
    .tool("write", {}, async (_, { elicit }) => {
      const answer = await elicit("Sure?", z.object({ sure: z.boolean() }))
      return answer.action === "accept" ? `written: ${answer.content.sure}` : answer.action
    })
    .resource("files://a", {}, () => "a")
    .template("files://{name}", { name: "one" }, ({ name }) => name)
    .prompt("review", {}, () => "Review it.")

const search = () =>
  new AsyncServer({ name: "search", version: "1.0.0" }).tool("read", {}, () => "found").tool(
    "find.all",
    {},
    () => "all"
  )

const text = (text: string) => ({ content: [{ type: "text", text }] })

const statesOf = (entries: ReadonlyArray<Entry>) => entries.map(({ name, state }) => `${name} ${state._tag}`)

/** Reads a loop until an element satisfies the condition. */
const until = async <A>(loop: AsyncIterable<A>, is: (element: A) => boolean): Promise<A | undefined> => {
  for await (const element of loop) if (is(element)) return element
  return undefined
}

for (const revision of Revision.all) {
  describe(revision, () => {
    const options = { revisions: [revision] }
    const servers = () => ({
      files: { transport: files().transport(), options },
      search: { transport: search().transport(), options },
      broken: { transport: failing }
    })

    it("lists each server, or its error, and calls a server by its name", async () => {
      await using pool = await AsyncClientPool.make(servers())
      const listed = await pool.tools()
      expect(listed.map(({ error, items, server }) => [server, error?.message ?? items?.map(({ name }) => name)]))
        .toEqual([
          ["files", ["read", "write"]],
          ["search", ["read", "find.all"]],
          ["broken", "The command was not found"]
        ])
      expect(statesOf(pool.entries)).toEqual(["files Open", "search Open", "broken Broken"])
      expect((await pool.resources())[0]?.items).toMatchObject([{ uri: "files://a" }])
      expect((await pool.resourceTemplates())[0]?.items).toMatchObject([{ uriTemplate: "files://{name}" }])
      expect((await pool.prompts())[0]?.items).toMatchObject([{ name: "review" }])
      expect((await pool.prompts())[1]).toEqual({ server: "search", items: [] })
      const client = await pool.client("files")
      expect([client.revision, client.label]).toEqual([revision, "files"])
      expect(await client.callTool("read", { path: "x" })).toMatchObject(text("content of x"))
      const open = pool.entries[1]!.state
      expect(open._tag === "Open" && await open.client.callTool("read")).toMatchObject(text("found"))
      await expect(pool.client("broken")).rejects.toMatchObject({ reason: { _tag: "ConnectionFailed" } })
      await expect(pool.client("other")).rejects.toMatchObject({
        _tag: "PoolError",
        reason: { _tag: "ServerNotFound" }
      })
    })

    it("has the tools of all servers with unique names, and calls them by these", async () => {
      await using pool = await AsyncClientPool.make(servers())
      const { call, instructions, missing, pending, tools } = await pool.toolkit()
      expect(tools.map(({ name, server, tool }) => [name, server, tool.name])).toEqual([
        ["files_read", "files", "read"],
        ["files_write", "files", "write"],
        ["search_read", "search", "read"],
        ["search_find_all", "search", "find.all"]
      ])
      expect(tools[0]).toMatchObject({
        description: "Reads.",
        inputSchema: { properties: { path: { type: "string" } } }
      })
      expect((await pool.toolkit({ schemas: "none" })).tools[0]!.inputSchema).toEqual(tools[0]!.tool.inputSchema)
      expect(missing).toMatchObject([{ server: "broken", error: { message: "The command was not found" } }])
      expect(pending).toEqual([])
      expect(instructions).toContain("Read before you write.")
      const progress: Array<number> = []
      const onProgress = (report: { readonly progress: number }) => void progress.push(report.progress)
      expect(await call("files_read", { path: "x" }, { onProgress })).toMatchObject(text("content of x"))
      expect(progress).toEqual([1])
      expect(await call("search_find_all")).toMatchObject(text("all"))
      const invalid = call("files_read", {})
      if (revision >= "2025-11-25") expect(await invalid).toMatchObject({ isError: true })
      else await expect(invalid).rejects.toMatchObject({ reason: { _tag: "ProtocolError" } })
      await expect(call("read")).rejects.toMatchObject({
        _tag: "PoolError",
        message: "The toolkit has no tool named \"read\"",
        reason: { _tag: "ToolNotFound", tool: "read" }
      })
    })

    it("answers the questions of all servers, whose label is their name in the pool", async () => {
      const asked: Array<unknown> = []
      await using pool = await AsyncClientPool.make({ a: servers().files, b: servers().files }, {
        elicit: async ({ server }) => {
          asked.push(server.label)
          return { action: "accept", content: { sure: true } }
        }
      })
      const { call } = await pool.toolkit()
      const expected = revision >= "2025-06-18" ? text("written: true") : { isError: true }
      expect(await call("a_write")).toMatchObject(expected)
      expect(await call("b_write")).toMatchObject(expected)
      expect(asked).toEqual(revision >= "2025-06-18" ? ["a", "b"] : [])
    })
  })
}

describe("AsyncClientPool", () => {
  it("bounds and selects the tools of a toolkit", async () => {
    await using pool = await AsyncClientPool.make({
      files: { transport: files().transport() },
      search: { transport: search().transport() }
    })
    const { omitted, tools } = await pool.toolkit({
      maxTools: 2,
      include: (_, { name }) => name !== "write",
      override: (server) => server === "search" ? { name: "look up", description: "Looks up." } : undefined
    })
    expect(tools.map(({ description, name }) => [name, description])).toEqual([
      ["files_read", "Reads."],
      [expect.stringMatching(/^look_up/), "Looks up."]
    ])
    expect(omitted).toMatchObject([{ server: "search", tool: { name: "find.all" }, bound: "maxTools" }])
    const { tools: ofOne } = await pool.toolkit({ servers: (server) => server === "search" })
    expect(ofOne.map(({ name }) => name)).toEqual(["search_read", "search_find_all"])
  })

  it("does not wait for a server that hangs, and lists it as pending", async () => {
    const hanging = ScriptedServer.make(() => "no response")
    await using pool = await AsyncClientPool.make({
      slow: { transport: hanging.transport },
      search: { transport: search().transport() }
    })
    const { pending, tools } = await pool.toolkit({ readyTimeout: 100 })
    expect([pending, tools.length]).toEqual([["slow"], 2])
    const signal = AbortSignal.timeout(20)
    await expect(pool.client("slow", { signal })).rejects.toMatchObject({ name: "TimeoutError" })
    await using failing = await AsyncClientPool.make({ slow: { transport: hanging.transport } }, { timeout: 50 })
    expect((await failing.tools())[0]?.error?.reason._tag).toBe("Timeout")
  })

  it("cancels an aborted call at the server", async () => {
    let begin = () => {}
    const begun = new Promise<void>((resolve) => begin = resolve)
    let abort = () => {}
    const aborted = new Promise<void>((resolve) => abort = resolve)
    const server = new AsyncServer({ name: "waiting", version: "1.0.0" }).tool("wait", {}, (_, { signal }) => {
      signal.addEventListener("abort", () => abort())
      begin()
      return new Promise<string>(() => {})
    })
    await using pool = await AsyncClientPool.make({ a: { transport: server.transport() } })
    const controller = new AbortController()
    const { call } = await pool.toolkit()
    const pending = call("a_wait", {}, { signal: controller.signal })
    await begun
    controller.abort()
    await expect(pending).rejects.toMatchObject({ name: "AbortError" })
    await aborted
  })

  it("adds, restarts and removes servers, and reports it to loops", async () => {
    await using pool = await AsyncClientPool.make({ a: { transport: files().transport() } }, { maxServers: 2 })
    const changes = pool.changes()[Symbol.asyncIterator]()
    expect((await changes.next()).value).toMatchObject({ servers: ["a"] })
    await pool.client("a")
    await pool.add("b", { transport: failing })
    await expect(pool.add("b", { transport: failing })).rejects.toMatchObject({ reason: { _tag: "DuplicateName" } })
    await expect(pool.add("c", { transport: failing })).rejects.toMatchObject({ reason: { _tag: "LimitExceeded" } })
    await until({ [Symbol.asyncIterator]: () => changes }, ({ servers }) => servers.includes("b"))
    expect(await until(pool.states(), (entries) => statesOf(entries).includes("b Broken"))).toBeDefined()
    await pool.restart("b", { transport: search().transport() })
    expect(await (await pool.client("b")).callTool("read")).toMatchObject(text("found"))
    await expect(pool.restart("c")).rejects.toMatchObject({ reason: { _tag: "ServerNotFound" } })
    expect([await pool.remove("b"), await pool.remove("b")]).toEqual([true, false])
    expect(statesOf(pool.entries)).toEqual(["a Open"])
  })

  it("opens the process of a server again after it was killed", async () => {
    const server = { transport: Stdio.transport({ command: process.execPath, args: ["-e", toolServer()] }) }
    await using pool = await AsyncClientPool.make({ a: server }, { reconnect: { initialDelay: "10 millis" } })
    const pidOf = async () => {
      const { structuredContent } = await (await pool.client("a")).callTool("t")
      return (structuredContent as { readonly pid: number }).pid
    }
    const first = await pidOf()
    const seen: Array<string> = []
    const reopened = until(pool.states(), (entries) => {
      seen.push(...statesOf(entries))
      return seen.includes("a Broken") && seen.at(-1) === "a Open"
    })
    process.kill(first, "SIGKILL")
    await reopened
    const second = await pidOf()
    expect(second).not.toBe(first)
    await pool.close()
    expect(() => process.kill(second, 0)).toThrow("ESRCH")
  })

  it("ends pending calls, loops and clients when it is closed", async () => {
    const hanging = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () => "no response"))
    const pool = await AsyncClientPool.make({ a: { transport: hanging.transport } })
    const client = await pool.client("a")
    const failure = client.callTool("wait").then(() => undefined, (error: unknown) => error)
    await vi.waitFor(() => expect(hanging.requests("tools/call").length).toBe(1), 60_000)
    const states = pool.states()[Symbol.asyncIterator]()
    await states.next()
    const next = states.next()
    const closing = pool.close()
    expect(pool.close()).toBe(closing)
    await closing
    expect(hanging.openConnections).toBe(0)
    expect(await failure).toMatchObject({ _tag: "ClientError", reason: { _tag: "Closed" } })
    expect(await next).toEqual({ done: true, value: undefined })
    for (const late of [pool.client("a"), pool.toolkit(), client.ping()]) {
      await expect(late).rejects.toMatchObject({ message: "The pool was closed", reason: { _tag: "Closed" } })
    }
  })

  it("closes when its signal aborts", async () => {
    const controller = new AbortController()
    const { signal } = controller
    const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () => "no response"))
    const pool = await AsyncClientPool.make({ a: { transport: server.transport } }, { signal })
    await pool.client("a")
    const states = pool.states()[Symbol.asyncIterator]()
    await states.next()
    controller.abort()
    expect(await states.next()).toEqual({ done: true, value: undefined })
    await pool.close()
    expect(server.openConnections).toBe(0)
    await expect(AsyncClientPool.make({}, { signal })).rejects.toMatchObject({ name: "AbortError" })
  })

  it("rejects options that cannot be used, and leaves nothing open", async () => {
    const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () => "no response"))
    const two = { a: { transport: server.transport }, b: { transport: server.transport } }
    await expect(AsyncClientPool.make(two, { maxServers: 1 })).rejects.toMatchObject({
      reason: { _tag: "LimitExceeded" }
    })
    await expect(AsyncClientPool.make(two, { roots: [{ uri: "https://a" }] })).rejects
      .toMatchObject({ _tag: "InvalidRoot" })
    expect(server.openConnections).toBe(0)
  })

  it("has methods that work without the pool", async () => {
    const { client, close, toolkit } = await AsyncClientPool.make({ a: { transport: search().transport() } })
    expect((await toolkit()).tools.length).toBe(2)
    expect(await (await client("a")).callTool("read")).toMatchObject(text("found"))
    await close()
  })
})

describe("AsyncClientPool.fromConfig", () => {
  const withFile = async (use: (path: string, write: (servers: object) => void) => Promise<void>) => {
    const folder = mkdtempSync(join(tmpdir(), "skein-async-pool-"))
    const path = join(folder, "mcp.json")
    try {
      await use(path, (config) => writeFileSync(path, JSON.stringify(config)))
    } finally {
      rmSync(folder, { recursive: true })
    }
  }
  const server = (tool: string, env = {}) => ({ command: process.execPath, args: ["-e", toolServer(), tool], env })

  it("runs the servers of a file, and applies its changes", () =>
    withFile(async (path, write) => {
      write({ mcpServers: { a: server("one"), b: { disabled: true }, c: {} } })
      await using pool = await AsyncClientPool.fromConfig(NodeConfig.file(path))
      const { config, reload } = pool
      expect([[...config.servers.keys()], config.disabled, config.problems.length]).toEqual([["a"], ["b"], 1])
      expect((await pool.tools()).map(({ items }) => items?.map(({ name }) => name))).toEqual([["one"]])
      write({ mcpServers: { a: server("one"), d: server("two") } })
      expect(await reload()).toMatchObject({ added: ["d"], unchanged: ["a"], problems: [] })
      expect((await pool.toolkit({ readyTimeout: "20 seconds" })).tools.map(({ name }) => name)).toEqual([
        "a_one",
        "d_two"
      ])
      expect([...pool.config.servers.keys()]).toEqual(["a", "d"])
      writeFileSync(path, "{")
      await expect(reload()).rejects.toMatchObject({ reason: { _tag: "InvalidConfig" } })
      expect(pool.entries.length).toBe(2)
    }))

  it("asks for inputs with a promise", () =>
    withFile(async (path, write) => {
      write({
        inputs: [{ id: "key", type: "promptString" }],
        servers: { a: server("one", { A: "${input:key}" }) }
      })
      const input = async ({ id }: { readonly id: string }) => `the ${id}`
      await using pool = await AsyncClientPool.fromConfig(NodeConfig.file(path, { input }))
      const { structuredContent } = await (await pool.client("a")).callTool("one")
      expect(structuredContent).toMatchObject({ env: { A: "the key" } })
    }))

  it("rejects a configuration that cannot be read", async () => {
    await expect(AsyncClientPool.fromConfig(NodeConfig.file("/no/such/file"))).rejects
      .toMatchObject({ _tag: "PoolError", reason: { _tag: "ConfigUnreadable" } })
  })
})
