/** The bounds in the command lines of `skein dev` and `skein conformance`. */
import { assert, describe, it } from "@effect/vitest"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { conformanceCommand, devCommand } from "../src/internal/commands/developCommands.ts"
import { Process } from "../src/internal/base/process.ts"
import { runCommand } from "../src/internal/commands/runCommand.ts"
import { skeinArguments } from "../src/internal/commands/skeinCommand.ts"

/** Runs the command line with handlers that record it. */
const run = (...argv: ReadonlyArray<string>) => {
  let line: Readonly<Record<string, unknown>> = {}
  let err = ""
  const record = (parsed: object) => Effect.sync(() => void (line = { ...parsed }))
  const recording = Command.make("skein").pipe(
    Command.withSubcommands([
      Command.withHandler(devCommand, record),
      Command.withHandler(conformanceCommand, record)
    ])
  )
  const process = {
    env: {},
    console: { print: () => Effect.void, warn: (text: string) => void (err += `${text}\n`) },
    terminal: undefined
  }
  const code = Effect.runSync(Effect.provideService(runCommand(recording, skeinArguments(argv)), Process, process))
  return { code, err, line }
}

const bridge = { maxSessions: 32, maxBodyBytes: 4_194_304 }
const defaults = {
  dev: {
    ...bridge,
    debounce: 100,
    startTimeout: 30_000,
    drainTimeout: 5_000,
    closeTimeout: 500,
    maxWaiting: 1_000,
    maxFolders: 1_000
  },
  conformance: { ...bridge, timeout: 30_000, totalTimeout: 900_000, closeTimeout: 500 }
}

const optionOf = (member: string): string => `--${member.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`

for (const command of ["dev", "conformance"] as const) {
  describe(`skein ${command}`, () => {
    it("has the default of each bound", () => {
      const { code, err, line } = run(command, "node server.ts")
      assert.deepStrictEqual([code, err], [0, ""])
      assert.deepInclude(line, defaults[command])
    })

    for (const member of Object.keys(defaults[command])) {
      const option = optionOf(member)
      it(`takes ${option} before its operands, and rejects other values than numbers of its range`, () => {
        const { code, line } = run(command, option, "7", "node", "server.js", option, "8")
        assert.deepStrictEqual([code, line[member]], [0, member.startsWith("max") ? 7 : 7_000])
        assert.deepInclude(line["target"], { command: "node", args: ["server.js", option, "8"] })
        for (const value of ["0", "-1", "x", "", "9999999999"]) {
          const wrong = run(command, `${option}=${value}`, "node server.ts")
          assert.deepStrictEqual([wrong.code, wrong.err.includes(`skein: ${option} must be a`)], [2, true], value)
        }
      })
    }

    it("takes up to 256 MiB as --max-body-bytes", () => {
      const most = 256 * 1024 * 1024
      assert.strictEqual(run(command, "--max-body-bytes", `${most}`, "node server.ts").line["maxBodyBytes"], most)
      const { code, err } = run(command, "--max-body-bytes", `${most + 1}`, "node server.ts")
      assert.deepStrictEqual(
        [code, err.split("\n")[0]],
        [2, `skein: --max-body-bytes must be a whole number from 1 to ${most}: "${most + 1}"`]
      )
    })
  })
}

describe("skein conformance", () => {
  it("takes a server of a configuration, headers and a sign-in, as the other commands do", () => {
    const url = "https://tea.example/mcp"
    const { line } = run("conformance", "--header", "Authorization: Bearer x", url, "--scenario", "ping")
    assert.deepInclude(line, { headers: { Authorization: "Bearer x" }, scenario: "ping", login: false })
    assert.deepInclude(line["target"], { _tag: "Url" })
    const configured = run("conformance", "--config", "mcp.json", "--server", "tea", "--input", "key=1").line
    assert.deepInclude(configured, { config: "mcp.json", server: "tea", inputs: { key: "1" } })
    assert.deepInclude(run("conformance", "--login", "--scope", "a b", url).line, { login: true, scopes: ["a", "b"] })
    for (
      const [report, ...argv] of [
        ["A server is required"],
        ["--server is required", "--config", "mcp.json"],
        ["--header needs a server with a URL", "--header", "a: b", "node server.js"],
        ["--login needs a server with a URL", "--login", "node server.js"],
        ["need --login", "--scope", "a", url],
        ["--header cannot be used with --config", "--header", "a: b", "--config", "mcp.json", "--server", "tea"]
      ] as const
    ) {
      const { code, err } = run("conformance", ...argv)
      assert.strictEqual(code, 2)
      assert.include(err, report)
    }
  })
})
