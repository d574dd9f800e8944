import { afterEach, describe, expect, it } from "@effect/vitest"
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
      expect(child.stderr.all.slice(-2)).toEqual(["cleaning up", "cleaned up"])
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
      error: { code: -32600, message: "Invalid Request: the line exceeds 4194304 bytes" }
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
    // 40 MB, below `maxBufferedChars`.
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
