/** Unexpected failures of tools as `skein call` shows them, with processes of `skein`. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { asWord, makeProject, program, type Project, run } from "./project.ts"

const hint = "Use --verbose to see the log of the server\n"
const log = "The log of the server has the cause, with the reference [\\da-f-]{36}"
const shown = "The tool pour failed unexpectedly: TypeError: the pot is empty \\(\\S+kettle\\.ts:4:9\\)\\. "
const hidden = "The tool pour failed unexpectedly\\. "

let project: Project

beforeAll(async () => {
  project = await makeProject({
    "kettle.ts": [
      "import { AsyncServer } from \"@skein/server/AsyncServer\"",
      "export const server = new AsyncServer({ name: \"kettle\", version: \"1.0.0\" })",
      "  .tool(\"pour\", {}, (): string => {",
      "  throw new TypeError(\"the pot is empty\")",
      "})"
    ].join("\n")
  })
})

afterAll(() => project.remove())

/** A command of `skein` that serves the module. */
const serving = (command: "run" | "dev"): string => asWord([process.execPath, ...program, command, "kettle.ts"])

const pour = async (server: string, ...options: ReadonlyArray<string>): Promise<string> => {
  const { code, err, out } = await run(project, ["call", ...options, server, "pour", "{}"])
  assert.deepStrictEqual([code, out], [1, ""])
  return err
}

describe("skein call · an unexpected failure of a tool", () => {
  it("shows the message and the line for a module, without a hint", async () => {
    assert.match(await pour("kettle.ts"), new RegExp(`^${shown}${log}\n$`))
  })

  it("shows the message and the line through skein dev", async () => {
    assert.match(await pour(serving("dev")), new RegExp(`${shown}${log}\n`))
  })

  it("shows the reference of another command, and the option that shows its log", async () => {
    assert.match(await pour(serving("run")), new RegExp(`^${hidden}${log}\n${hint}$`))
  })

  it("shows the log of the command with --verbose, without a hint", async () => {
    const err = await pour(serving("run"), "--verbose")
    assert.match(err, new RegExp(`${hidden}${log}`))
    assert.include(err, "TypeError: the pot is empty")
    assert.notInclude(err, hint)
  })
})
