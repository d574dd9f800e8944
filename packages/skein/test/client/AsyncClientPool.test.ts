/** Pools of clients of the package `skein`: servers by name, configurations, and tools for models. */
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, describe, expect, it } from "@effect/vitest"
import { AsyncServer } from "skein"
import { AsyncClientPool, ClientError, middleware, NodeConfig, PoolError, ServerConfig, Stdio } from "skein/client"
import { z } from "zod"

const closing: Array<() => Promise<unknown>> = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const opened = async <P extends AsyncClientPool>(making: Promise<P>): Promise<P> => {
  const pool = await making
  closing.push(() => pool.close())
  return pool
}

const failureOf = (promise: Promise<unknown>): Promise<unknown> => promise.then(() => "no error", (error) => error)

const server = (name: string) =>
  new AsyncServer({ name, version: "1.0.0" })
    .tool("greet", { input: z.object({ name: z.string() }) }, (args) => `${name} greets ${args.name}`)
    .resource("notes://a", {}, () => "a")
    .prompt("p", {}, () => "p")
    .tool("ask", {}, async (_, { elicit }) => (await elicit("Really?", z.object({}))).action)

const broken = { transport: Stdio.transport({ command: "no-such-program-of-skein" }) }

describe("AsyncClientPool", () => {
  it("has the clients, lists and states of its servers, and separates the failures of one", async () => {
    const questions: Array<unknown> = []
    const pool = await opened(AsyncClientPool.make({ one: { transport: server("one").transport() }, broken }, {
      elicit: ({ message, server }) => {
        questions.push([server.label, message])
        return { action: "accept", content: {} }
      }
    }))
    expect(pool).toBeInstanceOf(AsyncClientPool)
    const client = await pool.client("one")
    expect(await client.callTool("greet", { name: "Ada" })).toMatchObject({ content: [{ text: "one greets Ada" }] })
    expect(await client.callTool("ask")).toMatchObject({ content: [{ text: "accept" }] })
    expect(questions).toEqual([["one", "Really?"]])
    const [first, second] = await pool.tools()
    expect(first).toMatchObject({ server: "one", items: [{ name: "greet" }, { name: "ask" }] })
    expect(second?.error).toBeInstanceOf(ClientError)
    for (const list of [pool.resources(), pool.prompts(), pool.resourceTemplates()]) {
      expect((await list).map(({ server }) => server)).toEqual(["one", "broken"])
    }
    expect(pool.entries).toMatchObject([
      { name: "one", state: { _tag: "Open" } },
      { name: "broken", state: { _tag: "Broken", error: { reason: { _tag: "ConnectionFailed" } } } }
    ])
    expect(await failureOf(pool.client("none"))).toMatchObject({ reason: { _tag: "ServerNotFound", server: "none" } })
  })

  it("adds, restarts and removes servers, whose clients have options of their own", async () => {
    const calls: Array<unknown> = []
    const record = middleware(async (call, next) => {
      calls.push([call.server, call.method.name])
      return next()
    })
    const pool = await opened(AsyncClientPool.make({}))
    await pool.add("one", { transport: server("one").transport(), options: { middleware: [record] } })
    await (await pool.client("one")).callTool("greet", { name: "Ada" })
    expect(calls).toEqual([["one", "tools/call"]])
    await pool.restart("one", { transport: server("two").transport() })
    expect(await (await pool.client("one")).callTool("greet", { name: "Ada" }))
      .toMatchObject({ content: [{ text: "two greets Ada" }] })
    expect(calls).toHaveLength(1)
    const seen: Array<ReadonlyArray<string>> = []
    for await (const entries of pool.states()) {
      seen.push(entries.map(({ name }) => name))
      if (entries.length === 0) break
      expect(await pool.remove("one")).toBe(true)
    }
    expect(seen).toEqual([["one"], []])
    expect(await pool.remove("one")).toBe(false)
    expect(await failureOf(pool.restart("one"))).toBeInstanceOf(PoolError)
  })

  it("reports changed servers to a loop, and ends the loop when it is closed", async () => {
    const pool = await opened(AsyncClientPool.make({ one: { transport: server("one").transport() } }))
    const seen: Array<ReadonlyArray<string>> = []
    for await (const { servers } of pool.changes()) {
      seen.push(servers)
      await pool.close()
    }
    expect(seen[0]).toEqual(["one"])
  })

  it("gives the tools of all servers unique names for a model, and calls them", async () => {
    const pool = await opened(AsyncClientPool.make({
      one: { transport: server("one").transport() },
      two: { transport: server("two").transport() }
    }))
    const { call, missing, omitted, pending, tools } = await pool.toolkit({
      include: (_, { name }) => name === "greet",
      schemas: "anthropic",
      readyTimeout: "30 seconds"
    })
    expect(tools.map(({ name, server }) => [name, server])).toEqual([["one_greet", "one"], ["two_greet", "two"]])
    expect([missing, omitted, pending]).toEqual([[], [], []])
    expect(await call("two_greet", { name: "Ada" })).toMatchObject({ content: [{ text: "two greets Ada" }] })
    expect(await failureOf(call("none"))).toMatchObject({ reason: { _tag: "ToolNotFound" } })
  })
})

describe("configurations", () => {
  const program = fileURLToPath(new URL("fixtures/server.ts", import.meta.url))
  const entry = { command: process.execPath, args: ["--conditions=@skein/source", program] }

  it("open the servers of a file, and apply its changes", async () => {
    const folder = await mkdtemp(join(tmpdir(), "skein-config-"))
    closing.push(() => rm(folder, { recursive: true }))
    const file = join(folder, "mcp.json")
    await writeFile(
      file,
      `{ // my servers\n "mcpServers": ${JSON.stringify({ hello: entry, off: { ...entry, disabled: true } })} }`
    )
    const pool = await opened(AsyncClientPool.fromConfig(NodeConfig.file(file)))
    const client = await pool.client("hello")
    expect(await client.callTool("greet", { name: "Ada" })).toMatchObject({ content: [{ text: "Hello, Ada" }] })
    expect([...pool.config.servers.keys(), ...pool.config.disabled]).toEqual(["hello", "off"])
    await writeFile(file, JSON.stringify({ mcpServers: { bad: {} } }))
    expect(await pool.reload()).toMatchObject({
      removed: ["hello"],
      added: [],
      problems: [{ reason: { _tag: "InvalidEntry", server: "bad" } }]
    })
    await rm(file)
    const error = await failureOf(pool.reload())
    expect(error).toBeInstanceOf(PoolError)
    expect(error).toMatchObject({ reason: { _tag: "ConfigUnreadable", source: file } })
    const empty = await opened(AsyncClientPool.fromConfig(NodeConfig.file(file, { optional: true })))
    expect(empty.entries).toEqual([])
  })

  it("ask for inputs, and take options of transports and clients by their entries", async () => {
    const config = {
      servers: { one: { url: "http://127.0.0.1:1/${input:path}" }, two: { url: "http://127.0.0.1:1/mcp" } },
      inputs: [{ id: "path", type: "promptString", description: "The path" }]
    }
    const seen: Array<unknown> = []
    const source = NodeConfig.object(config, {
      servers: (name) => name === "one",
      input: async ({ description, id }) => {
        seen.push([id, description])
        return "mcp"
      },
      http: (entry) => {
        seen.push(entry.url)
        return { shutdownTimeout: 0 }
      },
      client: ({ name }) => ({ label: name, info: { name: "host", version: "1.0.0" } })
    })
    const pool = await opened(AsyncClientPool.fromConfig(source, { include: () => false }))
    expect(seen).toEqual([["path", "The path"], "http://127.0.0.1:1/mcp"])
    expect(pool.config.excluded).toMatchObject([{ name: "one", type: "http" }])
  })

  it("are read without opening servers", async () => {
    const config = ServerConfig.parse(
      `{ "mcpServers": { "search": { "url": "https://x/\${A}", }, "b": { "command": "\${input:b}" } },
      "inputs": [{ "id": "b", "type": "promptString" }] }`
    )
    expect(await ServerConfig.read(config, { env: { A: "mcp" }, input: async () => "server" })).toMatchObject({
      entries: [{ name: "search", url: "https://x/mcp" }, { name: "b", command: "server" }],
      disabled: [],
      problems: []
    })
    const { problems } = await ServerConfig.read(config, { input: () => "server" })
    expect(problems).toMatchObject([{ reason: { _tag: "MissingVariable", server: "search", variable: "A" } }])
    expect(() => ServerConfig.parse("{", "mcp.json")).toThrow(PoolError)
    expect(await failureOf(ServerConfig.read([]))).toMatchObject({ reason: { _tag: "InvalidConfig" } })
  })
})
