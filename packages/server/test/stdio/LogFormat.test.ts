/** The options `logFormat` and `logLevel` of `Stdio.runMain`. */
import { describe, expect, it } from "@effect/vitest"
import { meta } from "../kit.ts"
import { run as start } from "./Child.ts"

/** Calls the tool of the server, and returns the lines that the process has written. */
const linesOf = async (options: object) => {
  const child = start("logging.ts", [JSON.stringify(options)])
  const request = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "log", arguments: {}, _meta: meta() } }
  child.process.stdin!.end(`${JSON.stringify(request)}\n`)
  expect(await child.exit).toBe(0)
  return { stdout: child.messages(), stderr: child.stderr.all }
}

describe("a stdio server with logFormat", () => {
  it("json · writes one object per line to stderr, and protocol messages only to stdout", async () => {
    const { stderr, stdout } = await linesOf({ logFormat: "json" })
    expect(stdout).toEqual([expect.objectContaining({ id: 1, result: expect.anything() })])
    const logged = stderr.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as unknown)
    expect(logged).toEqual([
      expect.objectContaining({ level: "WARN", message: "two\nlines", annotations: { city: "Oslo" } })
    ])
    expect(stderr).toContain("to the console")
  })

  it("logfmt · writes one line of pairs to stderr", async () => {
    const { stderr } = await linesOf({ logFormat: "logfmt" })
    expect(stderr[0]).toMatch(/ level=Warn .*message="two\\nlines" city=Oslo$/i)
  })

  it("logLevel · writes the messages of this level too", async () => {
    const { stderr } = await linesOf({ logLevel: "Debug" })
    expect(stderr[0]).toMatch(/DEBUG .*in detail$/)
  })
})
