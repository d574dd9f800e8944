import { afterEach, describe, expect, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { type Child, run as start } from "./Child.ts"

const children: Array<Child> = []
const run = (...args: Parameters<typeof start>): Child => {
  const child = start(...args)
  children.push(child)
  return child
}
afterEach(() => {
  for (const child of children.splice(0)) child.process.kill("SIGKILL")
})

describe("a stdio server's process", () => {
  it("2026-07-28 · SHOULD exit promptly when its standard input is closed", async () => {
    const child = run("server.ts")
    child.send(1, "echo")
    await child.stdout.until("\"id\":1")
    child.process.stdin!.end()
    expect(await child.exit).toBe(0)
    expect(child.stderr.all).toEqual([
      "before the connection",
      "ready",
      "end ClosedByPeer",
      "drained",
      "cleaning up",
      "cleaned up"
    ])
  })

  it("finishes requests in flight when stdin ends, and exits with 0", async () => {
    const child = run("server.ts")
    child.send(1, "slow")
    child.send(2, "slow")
    child.process.stdin!.end(JSON.stringify({ jsonrpc: "2.0", id: 3, method: "last line without its break" }))
    expect(await child.exit).toBe(0)
    expect(child.messages().map((message) => message.id)).toEqual([3, 1, 2])
  })

  it("flushes a last response of any length before the process exits", async () => {
    const child = run("server.ts", [], false)
    child.send(1, "late")
    child.send(2, "late")
    child.process.stdin!.end()
    await child.stderr.until("drained")
    let length = 0
    child.process.stdout!.on("data", (chunk: Buffer) => length += chunk.length)
    expect(await child.exit).toBe(0)
    expect(length).toBeGreaterThan(2_000_000)
    expect(child.stderr.all).toContain("slow")
  })

  it("waits for an unread response only as long as close does", async () => {
    const child = run("server.ts", [], false)
    child.send(1, "late")
    child.process.stdin!.end()
    await child.stderr.until("cleaned up")
    child.process.stdout!.destroy()
    expect(await child.exit).toBe(0)
  })

  it.each([["SIGTERM", 143], ["SIGINT", 130]] as const)(
    "%s interrupts, cleans up, and exits with %i",
    async (signal, code) => {
      const child = run("server.ts")
      child.send(1, "never")
      await child.stderr.until("waiting")
      child.process.kill(signal)
      expect(await child.exit).toBe(code)
      expect(child.stderr.all.filter((line) => line.startsWith("clean"))).toEqual(["cleaning up", "cleaned up"])
      expect(child.stderr.all.at(-1)).toMatch(/INFO \(#\d+\): Stopped after \d+ ms$/)
      expect(child.stdout.all).toEqual([])
    }
  )

  it("aborts a hanging cleanup after its timeout", async () => {
    const child = run("server.ts", ["hang"])
    await child.stderr.until("ready")
    child.process.kill("SIGTERM")
    expect(await child.exit).toBe(143)
    expect(child.stderr.all.slice(-2)).toEqual([
      "cleaning up",
      "SIGTERM: the cleanup took longer than shutdownTimeout (300 ms)"
    ])
  })

  it("allows a cleanup 5 seconds by default", async () => {
    const child = run("server.ts", ["hang", "default"])
    await child.stderr.until("ready")
    child.process.kill("SIGTERM")
    await child.stderr.until("cleaning up")
    const begin = performance.now()
    expect(await child.exit).toBe(143)
    expect(performance.now() - begin).toBeGreaterThan(4_500)
    expect(child.stderr.all.at(-1)).toBe("SIGTERM: the cleanup took longer than shutdownTimeout (5000 ms)")
  })

  it("exits at once on a second signal", async () => {
    const child = run("server.ts", ["hang"])
    await child.stderr.until("ready")
    child.process.kill("SIGTERM")
    await child.stderr.until("cleaning up")
    child.process.kill("SIGINT")
    expect(await child.exit).toBe(130)
    expect(child.stderr.all.at(-1)).toBe("cleaning up")
  })

  it("ends without an error when stdout is closed", async () => {
    const child = run("server.ts", [], false)
    await child.stderr.until("ready")
    child.process.stdout!.destroy()
    child.send(1, "echo")
    expect(await child.exit).toBe(0)
    expect(child.stderr.all.slice(2)).toEqual(["end ClosedByPeer", "drained", "cleaning up", "cleaned up"])
  })

  it("continues when stderr is closed", async () => {
    const child = run("server.ts")
    await child.stderr.until("ready")
    child.process.stderr!.destroy()
    child.send(1, "stderr")
    await child.stdout.until("\"id\":1")
    child.send(2, "echo")
    await child.stdout.until("\"id\":2")
    child.process.stdin!.end()
    expect(await child.exit).toBe(0)
  })

  it("responds to a malformed line with a parse error, and serves the next line", async () => {
    const child = run("server.ts")
    child.process.stdin!.write("{\"jsonrpc\":\n\u0000\u0001\n")
    child.send(1, "echo")
    await child.stdout.until("\"id\":1")
    expect(child.messages().map((message) => message.error?.code ?? message.id)).toEqual([-32700, -32700, 1])
  })

  it("skips a line over 4 MiB with an error that has its id, and serves the next line", async () => {
    const child = run("server.ts")
    const params = { text: "x".repeat(5 * 1024 * 1024) }
    child.process.stdin!.write(`${JSON.stringify({ jsonrpc: "2.0", id: 8, method: "echo", params })}\n`)
    child.send(9, "echo")
    await child.stdout.until("\"id\":9")
    const [error, answer] = child.messages()
    expect(error).toEqual({
      jsonrpc: "2.0",
      id: 8,
      error: { code: -32600, message: expect.stringContaining("the line exceeds maxLineBytes (4194304) of its reader") }
    })
    expect(answer!.id).toBe(9)
  })

  it("2026-07-28 · MUST NOT write anything to its stdout that is not a valid MCP message", async () => {
    const child = run("server.ts")
    child.send(1, "noise")
    child.send(2, "echo")
    await child.stdout.until("\"id\":2")
    child.process.stdin!.end()
    expect(await child.exit).toBe(0)
    expect(child.messages().map((message) => message.id)).toEqual([1, 2])
    const noise = child.stderr.all.filter((line) => line.includes("to ") || line === "written")
    expect(noise.filter((line) => !line.includes("Effect.log")).sort()).toEqual([
      "to console.info",
      "to console.log",
      "to stdout.end",
      "to stdout.write",
      "to stdout.write, bytes",
      "written"
    ])
    expect(noise.some((line) => line.includes("to Effect.log"))).toBe(true)
  })

  it("refuses a second connection on stdout, and keeps other output off it", async () => {
    const child = run("server.ts")
    child.send(1, "second")
    await child.stdout.until("\"id\":1")
    expect(child.stderr.all.at(-1)).toBe("OpenFailed: stdout is in use by another connection")
    child.send(2, "noise")
    await child.stdout.until("\"id\":2")
    expect(child.messages().map((message) => message.id)).toEqual([1, 2])
  })

  it("reports a defect on stderr and exits with 1", async () => {
    const child = run("server.ts")
    child.send(1, "die")
    expect(await child.exit).toBe(1)
    expect(child.stderr.all.some((line) => line.includes("a defect"))).toBe(true)
    expect(child.stderr.all).toContain("cleaned up")
    expect(child.stdout.all).toEqual([])
  })

  it("reports a failure on stderr and exits with 1", async () => {
    const child = run("server.ts")
    child.send(1, "fail")
    expect(await child.exit).toBe(1)
    expect(child.stderr.all.some((line) => line.includes("a failure"))).toBe(true)
    expect(child.stdout.all).toEqual([])
  })

  it("reports an invalid definition in one line without a stack", async () => {
    const child = run("twice.ts")
    expect(await child.exit).toBe(1)
    expect(child.stderr.all).toEqual(["A tool with the name \"twice\" exists already"])
    expect(child.stdout.all).toEqual([])
  })

  it("reports an uncaught exception on stderr and not on stdout", async () => {
    const child = run("server.ts")
    child.send(1, "throw")
    expect(await child.exit).toBe(1)
    expect(child.stderr.all.some((line) => line.includes("thrown outside"))).toBe(true)
    expect(child.stdout.all).toEqual([])
  })

  it("reads its input while its output is backed up, and writes all of it when it is read", async () => {
    const child = run("server.ts", ["count"], false)
    // 40 MB, below `maxUnsentChars`.
    const total = 200
    for (let id = 1; id <= total; id++) child.send(id, "big")
    await child.stderr.until("slow")
    await child.stderr.until(`received ${total}`)
    let lines = 0
    child.process.stdout!.on("data", (chunk: Buffer) => {
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines++
    })
    child.process.stdin!.end()
    expect(await child.exit).toBe(0)
    expect(lines).toBe(total)
  })

  it("releases stdout when the connection is closed, and leaves nothing that keeps the process running", async () => {
    const child = run("natural.ts")
    child.send(1, "hello")
    expect(await child.exit).toBe(0)
    const [thanks, after] = child.stdout.all.map((line) => JSON.parse(line))
    expect(thanks).toEqual({ jsonrpc: "2.0", method: "thanks" })
    expect(after).toEqual({ before: after.before, after: after.before, own: false })
    expect(child.stderr.all).toEqual(["while it is served"])
  })
})

describe("a stdio server at full load", () => {
  const hello = {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "test", version: "1" }
  }
  const text = (...messages: ReadonlyArray<object>) =>
    messages.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join("")
  const open = text(
    { id: "open", method: "initialize", params: hello },
    { method: "notifications/initialized" }
  )
  const call = (id: number, name: string, args: object = {}) =>
    text({ id, method: "tools/call", params: { name, arguments: args } })

  it("refuses calls, responds to pings, cancels calls and exits with stdin, while every handler hangs", async () => {
    const child = run("loaded.ts")
    const stdin = child.process.stdin!
    const answer = (id: unknown) => child.stdout.when(() => child.messages().find((message) => message.id === id))
    stdin.write(open)
    for (let id = 0; id < 1024 + 256 + 10; id++) stdin.write(call(id, "hang"))
    stdin.write(text({ id: "ping", method: "ping" }))
    expect((await answer("ping")).error).toBeUndefined()
    const refused = child.messages().filter(({ error }) => error !== undefined)
    expect(refused.map(({ error, id }) => [id, error!.code])).toEqual(
      Array.from({ length: 10 }, (_, n) => [1280 + n, -32603])
    )
    stdin.write(text({ method: "notifications/cancelled", params: { requestId: 7 } }))
    stdin.write(call(2000, "hang") + call(2001, "hang"))
    expect((await answer(2001)).error?.code).toBe(-32603)
    expect(child.messages().some(({ id }) => id === 2000)).toBe(false)
    stdin.end()
    expect(await child.exit).toBe(0)
  })

  it("exits with stdin while its client leaves 60 MB unread", async () => {
    const child = run("loaded.ts", [], false)
    const stdin = child.process.stdin!
    stdin.write(open)
    for (const id of [1, 2]) stdin.write(call(id, "big", { chars: 30_000_000 }))
    await child.stderr.when(() => child.stderr.all.filter((line) => line === "big").length === 2 ? true : undefined)
    stdin.end()
    const exited = new Promise((resolve) => child.process.once("exit", resolve))
    expect(await exited).toBe(0)
    child.process.stdout!.destroy()
  })

  it("refuses calls of a client that reads nothing, and ends the connection in bounded memory", async () => {
    const child = run("loaded.ts", [], false)
    const stdin = child.process.stdin!
    stdin.write(open)
    const flood = call(1, "big", { chars: 100_000 }).repeat(2_000)
    const exited = new Promise((resolve) => child.process.once("exit", resolve))
    let largest = 0
    while (await new Promise((resolve) => stdin.write(flood, (error) => setImmediate(resolve, error == null)))) {
      largest = Math.max(largest, residentBytes(child.process.pid!))
    }
    expect(await exited).toBe(1)
    child.process.stdout!.destroy()
    expect(child.stderr.all.some((line) => line.includes("maxUnsentChars"))).toBe(true)
    // Half of the 64 Mi characters are results of 100,000 characters.
    expect(child.stderr.all.filter((line) => line === "big").length).toBeLessThan(400)
    expect(largest).toBeLessThan(700 * 1024 * 1024)
  })
})

/** How much memory a process has had at most; 0 where the platform does not report it. */
const residentBytes = (pid: number): number => {
  try {
    const [, kib] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? []
    return Number(kib ?? 0) * 1024
  } catch {
    return 0
  }
}
