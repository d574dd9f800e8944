/** The options `logFormat`, `loggers` and `logLevel` of `Stdio.runMain`. */
import { afterEach, describe, expect, it } from "@effect/vitest"
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

// The child has the environment of this process.
const setVariable = (value: string): void => void (process.env["SKEIN_LOG_FORMAT"] = value)
afterEach(() => void delete process.env["SKEIN_LOG_FORMAT"])

describe("the end of a stdio server", () => {
  it.each(
    [["SIGTERM", ["Shutting down (requests: 1)"], [/^Stopped after \d+ ms$/]], ["the end of stdin", [], []]] as const
  )(
    "%s · the log names the requests that are interrupted",
    async (end, before, after) => {
      const child = start("logging.ts", [JSON.stringify({ logFormat: "json" })])
      const request = {
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "wait", arguments: {}, _meta: meta() }
      }
      child.process.stdin!.write(`${JSON.stringify(request)}\n`)
      await child.stderr.until("waiting")
      if (end === "SIGTERM") child.process.kill(end)
      else child.process.stdin!.end()
      await child.exit
      const messages = child.stderr.all.map((line) => (JSON.parse(line) as { readonly message: string }).message)
      expect(messages).toEqual([
        "waiting",
        ...before,
        "Requests interrupted (1): tools/call \"wait\"",
        ...after.map((pattern) => expect.stringMatching(pattern) as string)
      ])
    }
  )
})

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

  it("loggers · receive the logs of the process in the place of a format, and the cause of a failed start", async () => {
    const { stderr } = await linesOf({ loggers: true, logFormat: "json" })
    expect(stderr).toEqual(["own Warn: two", "lines", "to the console"])
    const child = start("logging.ts", [JSON.stringify({ loggers: true, name: "twice" })])
    expect(await child.exit).toBe(1)
    expect(child.stderr.all).toEqual([expect.stringMatching(/^own Fatal: .*wait/)])
  })

  it("reads SKEIN_LOG_FORMAT unless the code sets the option", async () => {
    setVariable("logfmt")
    expect((await linesOf({})).stderr[0]).toMatch(/ level=Warn /i)
    expect((await linesOf({ logFormat: "json" })).stderr[0]).toMatch(/^\{/)
  })

  it("prints one line and exits with 1 if the variable is not valid", async () => {
    setVariable("xml")
    const child = start("logging.ts")
    expect(await child.exit).toBe(1)
    expect(child.stderr.all).toEqual(["SKEIN_LOG_FORMAT is \"xml\": expected one of pretty, json, logfmt"])
    expect(child.stdout.all).toEqual([])
  })
})
