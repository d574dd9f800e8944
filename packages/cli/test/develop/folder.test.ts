/** A folder of modules as a server, as processes: `run`, `call`, `dev` and `build`. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { cp, mkdir, rm, symlink } from "node:fs/promises"
import { join } from "node:path"
import { asWord, greeting, makeProject, program, type Project, run, skein, start } from "./project.ts"

let project: Project
let shipped: Project

const tool = (name: string, answer: string): string => `
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
export const Layer = Tool.layer(Tool.make(${JSON.stringify(name)}), () => Effect.succeed(${JSON.stringify(answer)}))`

/** An asynchronous tool with a schema of zod. */
const brew = `
import * as Tool from "@skein/server/Tool"
import * as z from "zod"
const brew = Tool.make("brew", { input: z.object({ tea: z.string(), cups: z.number().int().default(1) }) })
export default Tool.async(brew, async ({ cups, tea }) => \`\${cups} of \${tea}\`)`

/** Files in folders of the project, by their paths. */
const files: Readonly<Record<string, string>> = {
  "tools/brew.ts": brew,
  "tools/a/stir.mjs": `${tool("stir", "stirred")}\nexport default Layer\nexport const helper = 1`,
  "tools/_helper.ts": "throw new Error(\"not a module of the server\")",
  "tools/brew.test.ts": "throw new Error(\"a test\")",
  "tools/types.d.ts": "export type Tea = string",
  "tools/node_modules/x.js": "throw new Error(\"a dependency\")",
  "tools/menu.json": "{}",
  "enums/a.ts": `
    import * as Tool from "@skein/server/Tool"
    import { next } from "./_count.ts"
    next()
    export default Tool.async(Tool.make("count"), async () => "count " + next())`,
  "enums/b.ts": `
    import * as Tool from "@skein/server/Tool"
    import { next } from "./_count.ts"
    enum Kind { First, Second }
    next()
    export default Tool.async(Tool.make("kind"), async () => "kind " + Kind.Second)`,
  "enums/_count.ts": "console.error(\"counting\")\nlet count = 0\nexport const next = () => ++count",
  "twice/one.ts": tool("stir", "one"),
  "twice/two.ts": tool("stir", "two"),
  "none/one.ts": tool("stir", "one"),
  "none/two.ts": "export const tea = \"sencha\"",
  "bare/one.ts": "export {}",
  "empty/_one.ts": tool("stir", "one"),
  "empty/one.spec.ts": tool("stir", "one"),
  "thrown/one.ts": tool("stir", "one"),
  "thrown/two.ts": "throw new Error(\"no database\")",
  "text/one.ts": tool("stir", "one"),
  "text/two.ts": "throw \"no database\"",
  "mistake/one.ts": tool("stir", "one"),
  "mistake/two.ts": "export default {",
  "whole/one.ts": greeting("never"),
  "async/one.ts": "export default { toLayer: () => 1 }",
  "service/one.ts": `
    import * as Context from "effect/Context"
    import * as Effect from "effect/Effect"
    import * as Layer from "effect/Layer"
    class Database extends Context.Service()("app/Database") {}
    export default Layer.effectDiscard(Effect.asVoid(Database))`,
  "mixed/one.ts": tool("stir", "one"),
  "mixed/two.ts": "import { tool } from \"skein\"\nexport const pour = tool(\"pour\", {}, () => \"two\")",
  "mixedFile/one.ts": `${tool("stir", "one")}\nexport { pour } from "../mixed/two.ts"`,
  "linked/one.ts": tool("stir", "one"),
  "deep/one.ts": tool("stir", "one"),
  "broken/package.json": "{",
  "broken/one.ts": tool("stir", "one")
}

beforeAll(async () => {
  project = await makeProject({
    "package.json": JSON.stringify({ name: "@tea/house", version: "2.1.0", type: "module" })
  })
  shipped = await makeProject({})
  await rm(join(shipped.folder, "node_modules"))
  for (const [file, text] of Object.entries(files)) {
    await mkdir(join(project.folder, file, ".."), { recursive: true })
    await project.write(file, text)
  }
  await symlink(join(project.folder, "tools/brew.ts"), join(project.folder, "linked/brew.ts"))
  await symlink("..", join(project.folder, "deep/up"))
})

afterAll(async () => {
  await project.remove()
  await shipped.remove()
})

describe("skein · a folder of modules", () => {
  it("is a server with the name and the version of package.json, and its definitions in the order of the paths", async () => {
    const { code, out } = await run(project, ["inspect", "./tools", "--json"])
    const { server, tools } = JSON.parse(out) as {
      readonly server: unknown
      readonly tools: ReadonlyArray<{ readonly name: string }>
    }
    assert.deepStrictEqual([code, server], [0, { name: "@tea/house", version: "2.1.0" }])
    assert.deepStrictEqual(tools.map(({ name }) => name), ["stir", "brew"])
  })

  it("is called by its name, without a separator too", async () => {
    assert.deepStrictEqual(await run(project, ["call", "tools", "brew", "tea=sencha", "cups=2"]), {
      code: 0,
      out: "2 of sencha\n",
      err: ""
    })
  })

  it("runs each module once if one of them has to be transformed", async () => {
    const command = asWord([process.execPath, ...program, "run", "enums"])
    const { err, out } = await run(project, ["call", "--verbose", command, "count", "{}"])
    assert.strictEqual(out, "count 3\n")
    assert.lengthOf(err.match(/counting/g)!, 1)
    assert.strictEqual((await run(project, ["call", "enums", "kind"])).out, "kind 1\n")
  })

  it("is served over HTTP with --http", async () => {
    const running = skein(project, ["run", "--http", "--port", "0", "tools"])
    await running.until(/Listening on http:\S+/)
    const url = /http:\/\/[\d.:]+\/mcp/.exec(running.err())![0]
    assert.strictEqual((await run(project, ["call", url, "stir"])).out, "stirred\n")
    running.child.kill("SIGTERM")
    assert.strictEqual(await running.ended, 143)
  })

  const cases: ReadonlyArray<readonly [title: string, args: ReadonlyArray<string>, report: RegExp]> = [
    [
      "two modules that register a name",
      ["twice"],
      /^skein: The module twice\/two\.ts cannot be served: .* "stir" exists already, in twice\/one\.ts\n$/
    ],
    ["a module without a layer", ["none"], /The module none\/two\.ts exports no definition.*: its exports are tea\. /],
    ["a module without exports", ["bare"], /The module bare\/one\.ts exports no definition.*: it has no exports\. /],
    ["no modules", ["empty"], /^skein: The folder empty has no modules: files whose names end with/],
    [
      "a module that throws",
      ["thrown"],
      /thrown\/two\.ts cannot be loaded: Error: no database\n +at file:\S+two\.ts:1:7\n$/
    ],
    ["a module that throws a text", ["text"], /The module \S+text\/two\.ts cannot be loaded: no database\n$/],
    ["a module that is not valid", ["mistake"], /The module \S+mistake\/two\.ts cannot be loaded: SyntaxError: /],
    ["a module with a server", ["whole"], /The module whole\/one\.ts exports a server: in a folder, modules export/],
    ["a module with an AsyncServer", ["async"], /The module async\/one\.ts exports a server/],
    [
      "a module that needs a service",
      ["service"],
      /service\/one\.ts needs the service app\/Database: provide its layer/
    ],
    [
      "definitions of both packages",
      ["mixed"],
      /^skein: The module mixed\/two\.ts exports a definition of skein, and @skein\/server serves the folder: use one of these packages\n$/
    ],
    [
      "definitions of both packages in a module",
      ["mixedFile"],
      /The module mixedFile\/one\.ts exports a definition of skein/
    ],
    ["a link to a module", ["linked"], /linked\/brew\.ts is a symbolic link, which is not followed/],
    ["a link to a folder", ["deep"], /deep\/up is a symbolic link, which is not followed/],
    ["a package.json that is not valid", ["broken"], /broken\/package\.json cannot be read: /],
    [
      "--export",
      ["--export", "Layer", "tools"],
      /--export cannot be used with a folder: all modules of tools are served/
    ]
  ]
  for (const [title, args, report] of cases) {
    it(`exits with 2 for a folder with ${title}`, async () => {
      const { code, err, out } = await run(project, ["run", ...args])
      assert.match(err, report)
      assert.deepStrictEqual([code, out], [2, ""])
    })
  }
})

describe("skein build · a folder of modules", () => {
  /** Builds a folder, and copies the file to a folder without `node_modules`. */
  const build = async (...args: ReadonlyArray<string>): Promise<string> => {
    const { code, err, out } = await run(project, ["build", "--json", ...args])
    assert.deepStrictEqual([code, err], [0, ""])
    const { file } = JSON.parse(out) as { readonly file: string }
    const to = join(shipped.folder, file.replace(/^.*\//, ""))
    await cp(join(project.folder, file), to)
    return to
  }

  it("writes one file that serves the folder on stdio", async () => {
    const file = await build("tools")
    assert.match(file, /tools\.cjs$/)
    const command = asWord([process.execPath, file])
    assert.strictEqual((await run(shipped, ["call", command, "brew", "{\"tea\":\"assam\"}"])).out, "1 of assam\n")
    assert.match((await run(shipped, ["inspect", "--info", command])).out, /^@tea\/house 2\.1\.0\n/)
  })

  it("writes one file that serves it over HTTP with --http", async () => {
    const file = await build("--http", "--out", "dist/http.cjs", "./tools/")
    const served = start(shipped, [process.execPath, file], { SKEIN_PORT: "0" })
    await served.until("Listening on")
    const url = /http:\/\/[\d.:]+\/mcp/.exec(served.err())![0]
    assert.strictEqual((await run(shipped, ["call", url, "stir"])).out, "stirred\n")
    served.child.kill("SIGTERM")
    await served.ended
  })

  it("writes a file that names the modules in its reports", async () => {
    const served = start(shipped, [process.execPath, await build("twice")])
    served.child.stdin!.end()
    assert.strictEqual(await served.ended, 1)
    assert.match(served.err(), /^FolderError: The module twice\/two\.ts cannot be served: .*, in twice\/one\.ts\n$/)
  })

  it("exits with 2 for definitions of both packages", async () => {
    const { code, err, out } = await run(project, ["build", "mixed"])
    assert.strictEqual(
      err,
      "skein: The module mixed/two.ts imports skein, and mixed/one.ts @skein/server: in a folder, use one of these packages\n"
    )
    assert.deepStrictEqual([code, out], [2, ""])
  })

  it("exits with 2 for a module without exports, and a file that is one of the modules", async () => {
    const bare = await run(project, ["build", "bare"])
    assert.match(bare.err, /The module bare\/one\.ts exports no definition.*: it has no exports\. /)
    const out = await run(project, ["build", "--out", "tools/a/stir.js", "tools"])
    assert.strictEqual(out.code, 0)
    const again = await run(project, ["build", "--out", "tools/a/stir.js", "tools"])
    assert.match(again.err, /The file of --out is a module of the server: tools\/a\/stir\.js/)
    assert.deepStrictEqual([bare.code, again.code], [2, 2])
    await rm(join(project.folder, "tools/a/stir.js"))
  })
})

describe("skein dev · a folder of modules", () => {
  it("restarts the server for a changed, a new and a deleted module", async () => {
    await mkdir(join(project.folder, "dev/more"), { recursive: true })
    await project.write("dev/one.ts", tool("stir", "first"))
    const running = skein(project, ["dev", "--http", "--port", "0", "dev"])
    await running.until(/Listening on http:\S+/)
    const url = /http:\/\/[\d.:]+\/mcp/.exec(running.err())![0]
    const call = async (name: string): Promise<string> => {
      const { err, out } = await run(project, ["call", url, name])
      return out + err
    }
    /** Waits for one restart more, which the command reports. */
    let restarts = 0
    const restarted = (file: string) =>
      running.until(new RegExp(`(?:Restarting: [^]*){${restarts++}}Restarting: ${file} changed`))
    assert.strictEqual(await call("stir"), "first\n")
    await project.write("dev/one.ts", tool("stir", "second"))
    await restarted("dev/one\\.ts")
    assert.strictEqual(await call("stir"), "second\n")
    await project.write("dev/more/two.ts", tool("pour", "poured"))
    await restarted("dev/more/two\\.ts")
    assert.strictEqual(await call("pour"), "poured\n")
    await rm(join(project.folder, "dev/more/two.ts"))
    await restarted("dev/more/two\\.ts")
    assert.match(await call("pour"), /Unknown tool: pour/)
    running.child.kill("SIGTERM")
    assert.strictEqual(await running.ended, 143)
  }, 120_000)
})
