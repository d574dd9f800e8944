/**
 * `skein-call` as a process, with servers of the official SDKs over stdio and over HTTP.
 */
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as z from "zod"
import * as Features from "../fixtures/features.ts"

const root = join(import.meta.dirname, "../..")
const node = [process.execPath, "--conditions=@skein/source"]
const program = join(root, "packages/cli/src/bin/skein-call.ts")

interface Run {
  readonly child: ChildProcess
  readonly out: () => string
  readonly err: () => string
  /** The exit code or signal, once stdout and stderr are closed in all processes. */
  readonly ended: Promise<number | string>
}

const start = (...args: ReadonlyArray<string>): Run => {
  const child = spawn(node[0]!, [node[1]!, program, ...args], { cwd: root, stdio: ["ignore", "pipe", "pipe"] })
  let out = ""
  let err = ""
  child.stdout.setEncoding("utf8").on("data", (text: string) => void (out += text))
  child.stderr.setEncoding("utf8").on("data", (text: string) => void (err += text))
  return { child, out: () => out, err: () => err, ended: once(child, "close").then(([code, signal]) => code ?? signal) }
}

const run = async (...args: ReadonlyArray<string>) => {
  const { ended, err, out } = start(...args)
  const code = await ended
  return { code, out: out(), err: err() }
}

describe("skein-call · an SDK server over stdio", () => {
  for (const version of ["sdkV1", "sdkV2"]) {
    const server = [...node, `interop/fixtures/${version}FeaturesServer.ts`]

    it(`${version}: calls a tool, and prints only its result`, async () => {
      const args = JSON.stringify({ name: "Ada" })
      const expected = { code: 0, out: "Hello, Ada!\n", err: "" }
      expect(await run(...server, "greet", args)).toEqual(expected)
    })
  }

  const server = [...node, "interop/fixtures/sdkV1FeaturesServer.ts"]

  it("accepts the server command as one argument, and the tool after --", async () => {
    const args = ["greet", JSON.stringify({ name: "Ada" })]
    const both = await Promise.all([run(server.join(" "), ...args), run(...server, "--", ...args)])
    expect(both.map(({ out }) => out)).toEqual(["Hello, Ada!\n", "Hello, Ada!\n"])
  })

  it("lists the tools, one per line", async () => {
    const { code, out } = await run(...server)
    const lines = out.trim().split("\n")
    expect(code).toBe(0)
    expect(lines).toHaveLength(9)
    expect(lines).toContain("greet(name: string)  Greets a person by name")
    expect(lines).toContain("add(a: number, b: number)")
  })

  it("prints each content type, and the whole result with --json", async () => {
    const { out } = await run(...server, "--", "gallery")
    expect(out).toContain(
      "a text\n[image: image/png, 70 bytes]\n[audio: audio/wav, 44 bytes]\n[resource: text] test://text\n"
    )
    const whole = await run("--json", ...server, "add", "{\"a\":1,\"b\":2}")
    expect(JSON.parse(whole.out)).toMatchObject({ structuredContent: { sum: 3 } })
  })

  it("prints a tool error to stderr and exits with 1", async () => {
    expect(await run(...server, "--", "fail")).toEqual({ code: 1, out: "", err: `${Features.failure}\n` })
  })

  it("prints progress to stderr with --verbose; SIGINT cancels the call, ends the server and exits with 130", async () => {
    const { child, ended, err, out } = start("--verbose", ...server, "count", "{\"steps\":2}")
    await expect.poll(err, { timeout: 60_000 }).toContain("2/2 step 2\n")
    child.kill("SIGINT")
    // `close` follows the end of the server, which shares stderr.
    expect(await ended).toBe(130)
    expect(out()).toBe("")
    expect(err()).toContain("Connected to sdk-v1 1.32.2 (protocol 2025-11-25)\n1/2 step 1\n2/2 step 2\n")
  })

  it("exits with 3 after a timeout", async () => {
    const { code, err, out } = await run("--timeout", "5", ...server, "--", "slow")
    expect([code, out]).toEqual([3, ""])
    expect(err).toMatch(/^skein-call: .*tools\/call/)
  })
})

describe("skein-call · invalid arguments and servers", () => {
  it("exits with 2 and prints the usage for invalid arguments", async () => {
    const { code, err, out } = await run("https://example.com/mcp", "add", "{")
    expect([code, out]).toEqual([2, ""])
    expect(err).toMatch(/^skein-call: The tool's arguments are not valid JSON.*\n\n  skein-call \[options\]/)
    expect((await run("--help")).out).toMatch(/^Calls a tool/)
  })

  it("exits with 3 if the server cannot be reached", async () => {
    const ends = await Promise.all([
      run("no-such-program-anywhere"),
      run("http://127.0.0.1:9/mcp"),
      run(process.execPath, "-e", "console.error('server failed'); process.exit(3)")
    ])
    expect(ends.map(({ code }) => code)).toEqual([3, 3, 3])
    expect(ends[2].err).toContain("server failed")
  })
})

describe("skein-call · an SDK server over HTTP", () => {
  let http: Server
  let url: string
  const seen: Array<string | undefined> = []

  const make = (): McpServer => {
    const server = new McpServer({ name: "sdk-v1-http", version: "1.0.0" })
    server.registerTool("greet", { inputSchema: { name: z.string() } }, ({ name }) => ({
      content: [{ type: "text", text: `Hello, ${name}!` }]
    }))
    server.registerTool("ask", {}, async () => {
      const requestedSchema = { type: "object" as const, properties: { tea: { type: "string" as const } } }
      const { action } = await server.server.elicitInput({ message: "Which tea?", requestedSchema })
      return { content: [{ type: "text", text: action }] }
    })
    return server
  }

  beforeAll(async () => {
    const sessions = new Map<string, StreamableHTTPServerTransport>()
    http = createServer(async (request, response) => {
      seen.push(request.headers["x-who"]?.toString())
      const id = request.headers["mcp-session-id"]?.toString()
      let transport = id === undefined ? undefined : sessions.get(id)
      if (transport === undefined) {
        transport = new StreamableHTTPServerTransport({
          sessionIdGenerator: () => globalThis.crypto.randomUUID(),
          onsessioninitialized: (id) => void sessions.set(id, transport!)
        })
        await make().connect(transport)
      }
      await transport.handleRequest(request, response)
    })
    http.listen(0, "127.0.0.1")
    await once(http, "listening")
    url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`
  })
  afterAll(() => {
    http.closeAllConnections()
    http.close()
  })

  it("calls a tool with additional headers", async () => {
    expect(await run(url, "greet", "{\"name\":\"Ada\"}", "--header", "X-Who: me")).toEqual({
      code: 0,
      out: "Hello, Ada!\n",
      err: ""
    })
    expect(seen.length).toBeGreaterThan(0)
    expect(new Set(seen)).toEqual(new Set(["me"]))
  })

  it("lists the tools", async () => {
    expect(await run(url)).toEqual({ code: 0, out: "greet(name: string)\nask()\n", err: "" })
  })

  it("declines an elicitation without a terminal, and reports it on stderr", async () => {
    const { code, err, out } = await run(url, "ask")
    expect({ code, out }).toEqual({ code: 0, out: "decline\n" })
    expect(err).toContain("Which tea?")
  })

  it("exits with 3 and the HTTP status if the URL is not an MCP server", async () => {
    const other = createServer((_, response) =>
      response.writeHead(404, { "content-type": "text/html" }).end("<p>No</p>")
    )
    other.listen(0, "127.0.0.1")
    await once(other, "listening")
    const { code, err, out } = await run(`http://127.0.0.1:${(other.address() as AddressInfo).port}/mcp`)
    other.close()
    expect([code, out]).toEqual([3, ""])
    expect(err).toMatch(/^skein-call: .*404/)
  })
})
