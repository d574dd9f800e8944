import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import { madeUp } from "./everything-client/madeUp.ts"
import { programs } from "./everything-client/programs.ts"
import * as kit from "./kit.ts"

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs it to its end, with more in its environment. */
const run = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}): Effect.Effect<Ended> =>
  Effect.callback((resume) => {
    const { args: before, command } = kit.program("everything-client/main.ts", ...args)
    execFile(
      command,
      before,
      { env: { ...process.env, ...env } },
      (error, stdout, stderr) =>
        resume(Effect.succeed({ code: error === null ? 0 : Number(error.code), stdout, stderr }))
    )
  })

const revision = (name: string) => ({ MCP_CONFORMANCE_PROTOCOL_VERSION: name })

describe("everything-client", () => {
  it.live("visits any server: lists, reads and calls, in a revision that is found out or that it is told", () =>
    Effect.gen(function*() {
      const url = yield* kit.urlOf(yield* kit.start(kit.program("everything/main.ts", "--port", "0")))
      const visits = yield* Effect.all([
        run([url]),
        run(["--fetch", url]),
        run([url], revision("2025-06-18")),
        run(["--fetch", url], revision("2025-11-25"))
      ])
      expect(visits.map(({ stdout }) => stdout.split("\n")[0])).toEqual([
        "everything 1.0.0 speaks 2026-07-28",
        "everything 1.0.0 speaks 2026-07-28",
        "everything 1.0.0 speaks 2025-06-18",
        "everything 1.0.0 speaks 2025-11-25"
      ])
      for (const { code, stderr, stdout } of visits) {
        expect(stderr).toBe("")
        expect(code).toBe(0)
        expect(stdout).toContain("  test_image_content  Answers with an image.")
        expect(stdout).toMatch(/^Tool test_simple_text: .*This is a simple text response/m)
        expect(stdout).toMatch(/^Resource test:\/\/static-text: /m)
        // It asks for something before it is filled in.
        expect(stdout).toMatch(/^Prompt test_input_required_result_prompt: .*something/m)
        // It does not say of itself that it changes nothing.
        expect(stdout).not.toContain("Tool test_trigger_tool_change:")
      }
      // What works is shown all the same: 2025-03-26 knows no questions to the user.
      const old = yield* run([url], revision("2025-03-26"))
      expect(old.stdout).toContain("Prompt test_simple_prompt: ")
      expect(old.stderr).toMatch(
        /^Prompt test_input_required_result_prompt failed: [^]*\nVisitFailed: 1 of \d+ attempts failed/m
      )
      expect(old.code).toBe(1)
    }))

  it.live("exits with 1 when something went wrong, and says what", () =>
    Effect.gen(function*() {
      expect(yield* run(["http://127.0.0.1:1/mcp"])).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^ClientError: .*127\.0\.0\.1:1/)
      })
      const url = yield* kit.urlOf(yield* kit.start(kit.program("everything/main.ts", "--port", "0")))
      // This server has no such tool.
      expect(yield* run([url], { MCP_CONFORMANCE_SCENARIO: "tools_call" })).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^ClientError: .*add_numbers/)
      })
      // Nobody says which calls to make.
      expect(yield* run([url], { MCP_CONFORMANCE_SCENARIO: "http-custom-headers" })).toMatchObject({ code: 1 })
    }))

  it.live("exits with 2 when it does not know what to do", () =>
    Effect.gen(function*() {
      const scenario = { MCP_CONFORMANCE_SCENARIO: "juggling" }
      const said = yield* Effect.all([
        run([]),
        run(["nowhere"]),
        run(["http://a/", "http://b/"]),
        run(["--juggle", "http://a/"]),
        run(["http://a/"], scenario),
        run(["http://a/"], revision("1999-01-01"))
      ], { concurrency: 2 })
      expect(said.map(({ code, stderr }) => `${code} ${stderr.split("\n")[0]}`)).toEqual([
        "2 There is no URL",
        "2 It is one URL that is wanted",
        "2 It is one URL that is wanted",
        expect.stringMatching(/^2 .*--juggle/),
        "2 There is no scenario juggling",
        "2 There is no revision 1999-01-01"
      ])
    }))

  it.effect("a tool that fails as tools may fails its program, and what it said is told", () =>
    Effect.gen(function*() {
      const { serve } = yield* McpServer.McpServer
      const client = yield* Client.make(InMemoryTransport.transport(serve))
      const error = yield* Effect.flip(programs["http-invalid-tool-headers"]!(client))
      expect(error.message).toMatch(/^fails: .*It always does/)
    }).pipe(Effect.provide(
      McpServer.layer(
        { name: "test", version: "1.0.0" },
        Tool.layer(Tool.make("fails"), () => Effect.succeed(Tool.result({ isError: true, content: "It always does" })))
      )
    )))

  it("makes up what a schema requires, and nothing else", () => {
    const properties = {
      name: { type: "string" },
      size: { type: "integer" },
      colour: { type: "string", enum: ["blue", "red"] },
      more: { type: "string" }
    }
    const made = madeUp({ type: "object", properties, required: ["name", "size", "colour", "unknown"] })
    expect(made).toEqual({ name: "something", size: 1, colour: "blue", unknown: "something" })
    expect(madeUp({ type: "object" })).toEqual({})
  })
})
