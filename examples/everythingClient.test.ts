import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import { sampleArguments } from "./everything-client/sampleArguments.ts"
import { scenarios } from "./everything-client/scenarios.ts"
import * as kit from "./testKit.ts"

interface Result {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs the program to its end, with additional environment variables. */
const run = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}): Effect.Effect<Result> =>
  Effect.callback((resume) => {
    const { args: programArgs, command } = kit.program("everything-client/main.ts", ...args)
    execFile(
      command,
      programArgs,
      { env: { ...process.env, ...env } },
      (error, stdout, stderr) =>
        resume(Effect.succeed({ code: error === null ? 0 : Number(error.code), stdout, stderr }))
    )
  })

const revision = (name: string) => ({ MCP_CONFORMANCE_PROTOCOL_VERSION: name })

describe("everything-client", () => {
  it.live("explores a server with a negotiated and with a given revision", () =>
    Effect.gen(function*() {
      const url = yield* kit.urlOf(yield* kit.start(kit.program("everything/main.ts", "--port", "0")))
      const results = yield* Effect.all([
        run([url]),
        run(["--fetch", url]),
        run([url], revision("2025-06-18")),
        run(["--fetch", url], revision("2025-11-25"))
      ])
      expect(results.map(({ stdout }) => stdout.split("\n")[0])).toEqual([
        "everything 1.0.0 with revision 2026-07-28",
        "everything 1.0.0 with revision 2026-07-28",
        "everything 1.0.0 with revision 2025-06-18",
        "everything 1.0.0 with revision 2025-11-25"
      ])
      for (const { code, stderr, stdout } of results) {
        expect(stderr).toBe("")
        expect(code).toBe(0)
        expect(stdout).toContain("  test_image_content  Returns an image.")
        expect(stdout).toMatch(/^Tool test_simple_text: .*This is a simple text response/m)
        expect(stdout).toMatch(/^Resource test:\/\/static-text: /m)
        // This prompt requests input before it is completed.
        expect(stdout).toMatch(/^Prompt test_input_required_result_prompt: .*something/m)
        // This tool has no readOnlyHint.
        expect(stdout).not.toContain("Tool test_trigger_tool_change:")
      }
      // 2025-03-26 has no elicitation. The failure of one prompt does not hide the results of the others.
      const old = yield* run([url], revision("2025-03-26"))
      expect(old.stdout).toContain("Prompt test_simple_prompt: ")
      expect(old.stderr).toMatch(
        /^Prompt test_input_required_result_prompt failed: [^]*\nExploreFailed: 1 of \d+ attempts failed/m
      )
      expect(old.code).toBe(1)
    }))

  it.live("exits with 1 after a failure, and prints the error", () =>
    Effect.gen(function*() {
      expect(yield* run(["http://127.0.0.1:1/mcp"])).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^ClientError: .*127\.0\.0\.1:1/)
      })
      const url = yield* kit.urlOf(yield* kit.start(kit.program("everything/main.ts", "--port", "0")))
      // The scenario calls a tool that this server does not have.
      expect(yield* run([url], { MCP_CONFORMANCE_SCENARIO: "tools_call" })).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^ClientError: .*add_numbers/)
      })
      // The scenario requires MCP_CONFORMANCE_CONTEXT.
      expect(yield* run([url], { MCP_CONFORMANCE_SCENARIO: "http-custom-headers" })).toMatchObject({ code: 1 })
    }))

  it.live("exits with 2 for wrong arguments", () =>
    Effect.gen(function*() {
      const scenario = { MCP_CONFORMANCE_SCENARIO: "unknown" }
      const results = yield* Effect.all([
        run([]),
        run(["nowhere"]),
        run(["http://a/", "http://b/"]),
        run(["--juggle", "http://a/"]),
        run(["http://a/"], scenario),
        run(["http://a/"], revision("1999-01-01"))
      ], { concurrency: 2 })
      expect(results.map(({ code, stderr }) => `${code} ${stderr.split("\n")[0]}`)).toEqual([
        "2 missing URL",
        "2 expected one valid URL",
        "2 expected one valid URL",
        expect.stringMatching(/^2 .*--juggle/),
        "2 unknown scenario: unknown",
        "2 unknown revision: 1999-01-01"
      ])
    }))

  it.effect("fails the program of a scenario when a tool fails, with the tool's message", () =>
    Effect.gen(function*() {
      const { serve } = yield* McpServer.McpServer
      const client = yield* Client.make(InMemoryTransport.transport(serve))
      const error = yield* Effect.flip(scenarios["http-invalid-tool-headers"]!(client))
      expect(error.message).toMatch(/^fails: .*always fails/)
    }).pipe(Effect.provide(
      McpServer.layer(
        { name: "test", version: "1.0.0" },
        Tool.layer(Tool.make("fails"), () => Effect.succeed(Tool.result({ isError: true, content: "always fails" })))
      )
    )))

  it("generates sample values for the required properties only", () => {
    const properties = {
      name: { type: "string" },
      size: { type: "integer" },
      colour: { type: "string", enum: ["blue", "red"] },
      more: { type: "string" }
    }
    const generated = sampleArguments({ type: "object", properties, required: ["name", "size", "colour", "unknown"] })
    expect(generated).toEqual({ name: "something", size: 1, colour: "blue", unknown: "something" })
    expect(sampleArguments({ type: "object" })).toEqual({})
  })
})
