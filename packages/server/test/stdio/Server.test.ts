import { afterEach, describe, expect, it } from "@effect/vitest"
import { type ChildProcess, spawn } from "node:child_process"
import { openSync } from "node:fs"
import { fixture } from "./Child.ts"

const hello = {
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1.0.0" } }
}

const servers: Array<ChildProcess> = []
afterEach(() => {
  for (const server of servers.splice(0)) server.kill("SIGKILL")
})

interface Life {
  readonly exit: number | string
  readonly stderr: string
  readonly messages: ReadonlyArray<
    { readonly id: number; readonly result: { readonly isError?: boolean } }
  >
}

/**
 * Calls tools of the server in order without waiting, closes its stdin (after the first response to a call, with
 * `wait`), and returns the outcome.
 */
const life = (tools: ReadonlyArray<string>, stdout: "pipe" | number = "pipe", wait = false) =>
  new Promise<Life>((resolve) => {
    const server = spawn(process.execPath, ["--conditions=@skein/source", fixture("evil.ts")], {
      stdio: ["pipe", stdout, "pipe"]
    })
    servers.push(server)
    let out = ""
    let stderr = ""
    server.stdout?.on("data", (chunk) => {
      out += chunk
      if (wait && out.includes("\"id\":1")) server.stdin!.end()
    })
    server.stderr!.on("data", (chunk) => stderr += chunk)
    server.stdin!.on("error", () => {})
    server.once("close", (code, signal) =>
      resolve({
        exit: code ?? signal!,
        stderr,
        messages: out.split("\n").slice(0, -1).map((line) => JSON.parse(line))
      }))
    const calls = tools.map((name, at) => ({ jsonrpc: "2.0", id: at + 1, method: "tools/call", params: { name } }))
    server.stdin!.write([hello, ...calls].map((message) => `${JSON.stringify(message)}\n`).join(""))
    if (!wait) server.stdin!.end()
  })

describe("a server with failing handlers", () => {
  it("with handlers that print and throw keeps stdout clean, answers the other requests and exits with 0", async () => {
    const { exit, messages, stderr } = await life(["prints", "throws", "echo"])
    expect(exit).toBe(0)
    expect(messages.map(({ id, result }) => result.isError ?? id)).toEqual([0, 1, true, 3])
    expect(stderr).toContain("printed")
    expect(stderr).toContain("thrown inside")
  })

  it("with an unhandled rejection reports the cause on stderr and exits with 1", async () => {
    const { exit, stderr } = await life(["rejects"])
    expect(exit).toBe(1)
    expect(stderr).toContain("rejected outside")
  })

  it("with a handler that reads and pauses stdin still detects the end of stdin", async () => {
    const { exit, messages } = await life(["prompts"], "pipe", true)
    expect(exit).toBe(0)
    expect(messages.map(({ id }) => id)).toEqual([0, 1])
  })

  it("with a handler that exits has the handler's exit code", async () => {
    expect((await life(["exits"])).exit).toBe(3)
  })
})

describe("a server that loses its connection", () => {
  it.skipIf(process.platform !== "linux")(
    "reports the cause on stderr and exits with 1 if stdout breaks",
    async () => {
      const { exit, stderr } = await life(["echo"], openSync("/dev/full", "w"))
      expect(exit).toBe(1)
      expect(stderr).toContain("the output failed: ENOSPC")
    }
  )
})
