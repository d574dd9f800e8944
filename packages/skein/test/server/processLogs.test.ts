/** The logs of processes whose server has a logger, and the variables that configure them. */
import { describe, expect, it } from "@effect/vitest"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

const fixture = fileURLToPath(new URL("fixtures/logs.ts", import.meta.url))

/** The lines of a stream, which arrive while the process runs. */
const linesOf = (stream: NodeJS.ReadableStream) => {
  const lines: Array<string> = []
  const reader = createInterface({ input: stream })
  reader.on("line", (line) => lines.push(line))
  return { lines, reader }
}

const start = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) => {
  const child: ChildProcess = spawn(process.execPath, ["--conditions=@skein/source", fixture, ...args], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, ...env }
  })
  const stdout = linesOf(child.stdout!)
  const stderr = linesOf(child.stderr!)
  return { child, stdout: stdout.lines, stderr, closed: once(child, "close") as Promise<[number | null]> }
}

const call = {
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: {
    name: "order",
    arguments: {},
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "test", version: "1.0.0" },
      "io.modelcontextprotocol/clientCapabilities": {}
    }
  }
}

/** Calls the tool over stdio, ends stdin, and returns the lines that the process has written. */
const callOverStdio = async (logger: string, env?: Readonly<Record<string, string>>) => {
  const { child, closed, stderr, stdout } = start(["stdio", logger], env)
  child.stdin!.end(`${JSON.stringify(call)}\n`)
  const [code] = await closed
  expect(code).toBe(0)
  expect(stdout.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({
      id: 1,
      result: expect.objectContaining({ content: [{ type: "text", text: "ordered" }] })
    })
  ])
  return stderr.lines
}

const parsed = (lines: ReadonlyArray<string>) => lines.map((line) => JSON.parse(line) as Record<string, unknown>)

describe("the logger of a server process", () => {
  it("receives the logs of handlers over stdio, and nothing else reaches stdout", async () => {
    expect(parsed(await callOverStdio("own"))).toEqual([{ level: "info", message: "an order", tea: "sencha" }])
    expect(parsed(await callOverStdio("pino"))).toEqual([
      expect.objectContaining({ level: 30, msg: "an order", tea: "sencha" })
    ])
  })

  it("writes to stderr over stdio if it is console", async () => {
    expect((await callOverStdio("console")).join("\n")).toBe("an order { tea: 'sencha' }")
  })

  it("receives debug events with the level debug, and those from SKEIN_LOG_LEVEL on without a level", async () => {
    const messages = async (env: Readonly<Record<string, string>>) =>
      parsed(await callOverStdio("own", env)).map(({ message }) => message)
    expect(await messages({ LEVEL: "debug" })).toEqual(["an order", "in detail"])
    expect(await messages({ SKEIN_LOG_LEVEL: "debug" })).toEqual(["an order", "in detail"])
    expect(await messages({ SKEIN_LOG_LEVEL: "error" })).toEqual([])
    expect(await messages({ SKEIN_LOG_LEVEL: "error", LEVEL: "debug" })).toEqual(["an order", "in detail"])
  })

  it("is refused on stdio if it writes to the file descriptor of stdout", async () => {
    const { child, closed, stderr, stdout } = start(["stdio", "pinoOnStdout"])
    child.stdin!.end()
    expect(await closed).toEqual([1, null])
    expect(stderr.lines.join("\n")).toContain("TypeError: the logger writes to stdout, which carries protocol messages")
    expect(stdout).toEqual([])
  })

  it("receives the URL and the end of a server over HTTP, whose port SKEIN_PORT sets", async () => {
    const { child, closed, stderr } = start(["http", "own"], { SKEIN_PORT: "0", SKEIN_PATH: "/tea" })
    await once(stderr.reader, "line")
    const { message } = JSON.parse(stderr.lines[0]!) as { readonly message: string }
    expect(message).toMatch(/^Listening on http:\/\/127\.0\.0\.1:\d+\/tea$/)
    const answer = await fetch(message.slice("Listening on ".length), {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "order"
      },
      body: JSON.stringify(call)
    })
    expect(await answer.text()).toContain("ordered")
    child.kill("SIGTERM")
    expect(await closed).toEqual([143, null])
    const messages = parsed(stderr.lines).map(({ level, message }) => `${level} ${message}`)
    expect(messages.slice(1)).toEqual([
      "info an order",
      expect.stringMatching(/^info Shutting down \(requests: 0/),
      expect.stringMatching(/^info Stopped after \d+ ms$/)
    ])
  })

  it("receives the cause of a failed start, and of a variable that is not valid", async () => {
    const env = { SKEIN_PORT: "none" }
    const invalid = start(["http", "own"], env)
    expect(await invalid.closed).toEqual([1, null])
    expect(parsed(invalid.stderr.lines)).toEqual([
      { level: "error", message: "SKEIN_PORT is \"none\": expected a port, from 0 to 65535" }
    ])
  })
})
