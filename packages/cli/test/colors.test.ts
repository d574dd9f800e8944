/** The colors of the output. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { ansi, colorChanges, hasColors, plain } from "../src/internal/base/colors.ts"
import { sanitizeColored } from "../src/internal/base/format.ts"
import { type Console, Process } from "../src/internal/base/process.ts"
import { runCommand } from "../src/internal/commands/runCommand.ts"
import { skeinArguments, skeinCommand } from "../src/internal/commands/skeinCommand.ts"
import { table } from "../src/internal/base/textTable.ts"
import { folder } from "./serverKit.ts"

/** Returns the stderr of a command line, with colors. */
const reported = (...argv: ReadonlyArray<string>): string => {
  let err = ""
  const console: Console = {
    print: () => Effect.void,
    warn: (line) => void (err += `${line}\n`),
    colors: { out: ansi, err: ansi }
  }
  const running = runCommand(skeinCommand, skeinArguments(argv))
  const code = Effect.runSync(Effect.provideService(running, Process, { env: {}, console, terminal: undefined }))
  assert.strictEqual(code, 2)
  return err
}

describe("colors", () => {
  it("are for terminals, unless the environment decides otherwise", () => {
    assert.isTrue(hasColors({}, true))
    assert.isFalse(hasColors({}, false))
    assert.isFalse(hasColors({ NO_COLOR: "1" }, true))
    assert.isTrue(hasColors({ NO_COLOR: "" }, true))
    assert.isFalse(hasColors({ TERM: "dumb" }, true))
    assert.isTrue(hasColors({ FORCE_COLOR: "1" }, false))
    for (const off of ["", "0", "false"]) assert.isFalse(hasColors({ FORCE_COLOR: off }, false))
    assert.isFalse(hasColors({ FORCE_COLOR: "1", NO_COLOR: "1" }, false))
  })

  it("mark the heading of a table, whose columns stay aligned", () => {
    const rows = [["brew", "Brews tea"], ["order", ""]]
    const [head, ...lines] = table(["TOOL", "ABOUT"], rows, ansi).split("\n")
    assert.strictEqual(head, "\u001b[1mTOOL   ABOUT\u001b[22m")
    assert.deepStrictEqual(lines, table(["TOOL", "ABOUT"], rows).split("\n").slice(1))
  })

  it("mark the lines that are added and removed", () => {
    const changes = "@@ line 1 @@\n-{}\n+{ \"a\": 1 }"
    assert.strictEqual(
      colorChanges(changes, ansi),
      "@@ line 1 @@\n\u001b[31m-{}\u001b[39m\n\u001b[32m+{ \"a\": 1 }\u001b[39m"
    )
    assert.strictEqual(colorChanges(changes, plain), changes)
  })

  it("do not let other characters through that control a terminal", () => {
    const text = `${ansi.bold("TOOL")}\n\u001b[2J\u001b]0;title\u0007\u001b[8m`
    const shown = sanitizeColored(text)
    assert.include(shown, "\u001b[1mTOOL\u001b[22m\n")
    const rest = shown.replace(ansi.bold("TOOL"), "")
    assert.isFalse(Array.from(rest).some((character) => character < " " && character !== "\n"), rest)
  })

  it("mark the report about a wrong command line, without --json", () => {
    const wrong = "skein: <url> is required"
    assert.include(reported("login"), `\u001b[31m${wrong}\u001b[39m\n`)
    assert.include(reported("login", "--json"), `${wrong}\n`)
    assert.notInclude(reported("login", "--json"), "\u001b")
  })

  it.live(
    "mark the changes and the failures of a process with FORCE_COLOR, and not its JSON",
    () =>
      Effect.gen(function*() {
        const home = yield* folder
        const program = join(import.meta.dirname, "../src/bin/skein.ts")
        const start = (env: object, ...argv: ReadonlyArray<string>) =>
          spawnSync(process.execPath, ["--conditions=@skein/source", program, ...argv], {
            cwd: home,
            encoding: "utf8",
            env: { PATH: process.env["PATH"], HOME: home, ...env }
          })
        const install = ["install", "--host", "cursor", "--name", "tea", "https://tea.example/mcp"]
        const { status, stderr } = start({ FORCE_COLOR: "1" }, ...install)
        assert.strictEqual(status, 2)
        assert.include(stderr, "\u001b[32m+    \"tea\": {\u001b[39m\n")
        assert.include(stderr, "\u001b[31mskein: There is no terminal to confirm the change on")
        assert.isTrue(stderr.endsWith("--print\u001b[39m\n"))
        for (const plainly of [start({}, ...install), start({ FORCE_COLOR: "1" }, ...install, "--json")]) {
          assert.include(plainly.stderr, "+    \"tea\": {\n")
          assert.notInclude(plainly.stderr, "\u001b")
        }
      }),
    60_000
  )
})
