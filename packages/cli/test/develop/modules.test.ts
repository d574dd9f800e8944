/** Modules as servers of the commands that connect to one, as processes. */
import { afterAll, assert, beforeAll, describe, expect, it } from "@effect/vitest"
import { chmod, mkdir } from "node:fs/promises"
import { join } from "node:path"
import { asWord, greeting, makeProject, program, type Project, run } from "./project.ts"

let project: Project

beforeAll(async () => {
  project = await makeProject({
    "server.ts": greeting("hello"),
    "several.ts": greeting("one", "export const Other = Server"),
    "program.ts": `
      import * as Stdio from "@skein/server/Stdio"
      import { Server } from "./server.ts"
      Stdio.runMain(Server)`,
    "main.ts": "export const helper = 1",
    "broken.ts": "export const weights = {\n  one: 1\n  two: 2\n}\n",
    // A program of its own, which the system runs.
    "program.js": `#!${process.execPath}\nconsole.error("a program")\nprocess.exit(3)\n`,
    "calculator.mjs": `
      import { AsyncServer } from "@skein/server/AsyncServer"
      import * as Schema from "effect/Schema"
      export default new AsyncServer({ name: "calculator", version: "1.0.0" }).tool(
        "add",
        { input: Schema.Struct({ a: Schema.Number, b: Schema.Number }) },
        ({ a, b }) => String(a + b)
      ).tool("fail", {}, () => {
        throw new Error("secret")
      })`
  })
  await chmod(join(project.folder, "program.js"), 0o755)
})

afterAll(() => project.remove())

describe("skein · a module as the server", () => {
  it("is started by skein run, and its tool takes words", async () => {
    assert.deepStrictEqual(await run(project, ["call", "calculator.mjs", "add", "a=1", "b=2"]), {
      code: 0,
      out: "3\n",
      err: ""
    })
  }, 120_000)

  it("is inspected, with options after its path", async () => {
    const { code, out } = await run(project, ["inspect", "./server.ts", "--tools"])
    assert.deepStrictEqual([code, out], [0, "TOOL   DESCRIPTION\ngreet  Greets.\n"])
  }, 120_000)

  it("is inspected with the parts that it left out: operations and skills", async () => {
    await mkdir(join(project.folder, "skills/empty"), { recursive: true })
    await project.write("skills/empty/SKILL.md", "---\nname: empty\n---\nText\n")
    await project.write(
      "parts.ts",
      `
      import * as NodeSkills from "@skein/skills/NodeSkills"
      import * as OpenApi from "@skein/openapi/OpenApi"
      import * as McpServer from "@skein/server/McpServer"
      import * as Layer from "effect/Layer"
      const document = {
        openapi: "3.1.0",
        servers: [{ url: "https://pets.example" }],
        paths: { "/a": { get: {} }, "/b": { get: { parameters: [{ $ref: "#/none" }] } } }
      }
      export const Server = McpServer.layer(
        { name: "parts", version: "1.0.0" },
        Layer.mergeAll(OpenApi.layer(document), NodeSkills.layer(new URL("skills", import.meta.url)))
      )`
    )
    const warnings = [
      "\"empty\" was left out of the skills: The skill \"empty\" is invalid: its description must have 1 to 1024 characters",
      "The operation #/paths/~1b/get of the OpenAPI document is left out: The reference \"#/none\" leads to nothing"
    ]
    const { code, out } = await run(project, ["inspect", "--json", "parts.ts"])
    expect([code, JSON.parse(out).warnings.toSorted()]).toEqual([0, warnings])
    const text = await run(project, ["inspect", "--tools", "parts.ts"])
    const [table, list] = text.out.split("\n\n")
    expect(table).toBe("TOOL   DESCRIPTION\nget_a  GET /a")
    expect(list!.trim().split("\n").toSorted()).toEqual([...warnings, "WARNINGS OF THE SERVER"])
    expect((await run(project, ["inspect", "--json", "server.ts"])).out).not.toContain("warnings")
  }, 120_000)

  it("is called with the warnings of its start, once and before the result, and only of a module", async () => {
    await project.write(
      "named.mjs",
      `
      import { AsyncServer } from "@skein/server/AsyncServer"
      export const server = new AsyncServer({ name: "named", version: "1.0.0" }).tool("my tool!", {}, () => {
        console.error("[10:00:00.000] WARN (#1): a warning of the call")
        return "done"
      })`
    )
    const warning = "The tool name \"my tool!\" should be 1 to 128 characters of A-Z a-z 0-9 _ - ."
    const shown = `The server warns: ${warning}\n`
    assert.deepStrictEqual(await run(project, ["call", "named.mjs", "my tool!"]), {
      code: 0,
      out: "done\n",
      err: shown
    })
    assert.deepStrictEqual(await run(project, ["call", "named.mjs"]), { code: 0, out: "my tool!()\n", err: shown })
    const verbose = await run(project, ["call", "--verbose", "named.mjs", "my tool!"])
    assert.include(verbose.err, warning)
    assert.notInclude(verbose.err, "The server warns")
    const command = asWord([process.execPath, ...program, "run", "named.mjs"])
    assert.deepStrictEqual(await run(project, ["call", command, "my tool!"]), { code: 0, out: "done\n", err: "" })
  }, 120_000)

  it("is the export of --export, and the report of skein run asks for it", async () => {
    const several = await run(project, ["call", "several.ts", "greet"])
    assert.match(several.err, /exports several layers, select one with --export: Other, Server/)
    assert.strictEqual(several.code, 3)
    assert.strictEqual((await run(project, ["call", "several.ts", "--export", "Other", "greet"])).out, "one\n")
  }, 120_000)

  it("is a program if it has no exports", async () => {
    assert.deepStrictEqual(await run(project, ["call", "program.ts", "greet"]), { code: 0, out: "hello\n", err: "" })
  }, 120_000)

  it("is reported if it has no server", async () => {
    const { code, err } = await run(project, ["ping", "main.ts"])
    assert.match(err, /The module main\.ts exports no server/)
    assert.strictEqual(code, 3)
  }, 120_000)

  it("is reported without colors and with its line if its syntax is wrong", async () => {
    const { code, err } = await run(project, ["call", "broken.ts"])
    assert.notInclude(err, "\\u{1b}")
    assert.match(
      err,
      /the end of its stderr: skein: The module .*broken\.ts cannot be loaded: SyntaxError: .*broken\.ts: /
    )
    assert.include(err, "[ broken.ts:3:3 ]")
    assert.include(err, "\n 3 │   two: 2\n")
    assert.strictEqual(code, 3)
  }, 120_000)

  it.skipIf(process.platform === "win32")("is started as it is if it is an executable program", async () => {
    const { code, err } = await run(project, ["ping", "./program.js"])
    assert.include(err, "a program")
    assert.strictEqual(code, 3)
  }, 120_000)

  it.each(["skein call", "skein run"])("is reported in a package that is not an ES module: %s", async (command) => {
    const other = await makeProject({
      "package.json": JSON.stringify({ name: "other", type: "commonjs" }),
      "main.mjs": "import \"./tools.js\"",
      "server.js": greeting("hello"),
      "tools.js": "export const tools = []",
      "wait.js": "const ready = await 1"
    })
    try {
      const manifest = join(other.folder, "package.json")
      for (const [module, file] of [["server.js", "server.js"], ["main.mjs", "tools.js"], ["wait.js", "wait.js"]]) {
        const { code, err } = await run(other, [command.split(" ")[1]!, module!])
        assert.include(err, `skein: The module ${join(other.folder, file!)} has import or export, and its package is `)
        assert.include(err, `Set "type": "module" in ${manifest}: npm pkg set type=module`)
        assert.notInclude(err, "SyntaxError")
        assert.strictEqual(code, command === "skein run" ? 2 : 3)
      }
    } finally {
      await other.remove()
    }
  }, 120_000)

  it("has its log shown by the option --verbose", async () => {
    const { code, err } = await run(project, ["call", "calculator.mjs", "fail"])
    assert.match(err, /The tool fail failed unexpectedly\b.* with the reference [\da-f-]{36}\n$/)
    assert.strictEqual(code, 1)
    const verbose = await run(project, ["call", "--verbose", "calculator.mjs", "fail"])
    assert.match(verbose.err, /, reference [\da-f-]{36} Error: secret\n/)
  }, 120_000)

  it("suggests the name of a tool, with words and with JSON", async () => {
    const words = await run(project, ["call", "calculator.mjs", "ad", "a=1"])
    assert.deepStrictEqual(words, { code: 4, out: "", err: "skein: Unknown tool: ad; did you mean add?\n" })
    const json = await run(project, ["call", "calculator.mjs", "ad", "{\"a\":1}"])
    assert.deepStrictEqual(json, { code: 4, out: "", err: "skein: tools/call: Unknown tool: ad; did you mean add?\n" })
  }, 120_000)
})
