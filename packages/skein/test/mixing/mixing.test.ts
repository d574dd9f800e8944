/** A program that mixes the package `skein` with the packages `@skein/*` gets one clear error, or what it expects. */
import { describe, expect, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"

const run = async (): Promise<Record<string, unknown>> => {
  const program = join(import.meta.dirname, "program.ts")
  const { stdout } = await promisify(execFile)(process.execPath, ["--conditions=@skein/source", program])
  return JSON.parse(stdout)
}

describe("a program with skein and @skein/*", () => {
  it(
    "gets one error that names both for a value of the other, and receives errors and protections of the other",
    async () => {
      const outcomes = await run()
      const ofSkein = expect.stringMatching(
        /made by the package skein, which does not work together with Effect and the packages @skein/
      )
      const ofCore = expect.stringMatching(
        /made by Effect or a package @skein\/\*, which do not work together with the package skein/
      )
      expect(outcomes).toEqual({
        "are two copies": true,
        "a definition of skein in use": ofSkein,
        "a definition of skein in add": ofSkein,
        "a definition of skein in McpServer.layer": ofSkein,
        "a server of skein in use": ofSkein,
        "a definition of @skein in use": ofCore,
        "a store of @skein in OAuth": ofCore,
        "a store of skein in provide": ofSkein,
        "a store of @skein in use": ofCore,
        "a transport of skein in AsyncClient": "tea",
        "a transport of @skein in AsyncClient": "tea",
        "a context of @skein in Scopes.require": expect.stringContaining("needs the scopes: tea:write"),
        "a context of skein in run": expect.stringContaining("needs the scopes: tea:write"),
        "visible of the other in skein": [true, "seen"],
        "result of the other in skein": [true, "own"],
        "McpError of the other in skein": ["InvalidParams", expect.stringContaining("bad")],
        "Refusal of the other in skein": 418,
        "visible of the other in @skein": [true, "seen"],
        "result of the other in @skein": [true, "own"],
        "McpError of the other in @skein": ["InvalidParams", expect.stringContaining("bad")],
        "Refusal of the other in @skein": 418,
        "the protection of the other in skein": [401, 200],
        "the protection of the other in @skein": [401, 200]
      })
    },
    60_000
  )
})
