/** The package `skein` as the only package of Skein in a project: `run`, `call`, `inspect`, `dev` and `build` of its servers. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { cp, mkdir, rm, symlink } from "node:fs/promises"
import { dirname, join } from "node:path"
import { asWord, makeProject, program, type Project, run } from "./project.ts"

let project: Project
let shipped: Project

const add = `tool("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => String(a + b))`

const files: Readonly<Record<string, string>> = {
  "server.ts": `
    import { AsyncServer, tool } from "skein"
    import { z } from "zod"
    export const helper = 1
    export const server = new AsyncServer({ name: "calculator", version: "1.0.0" }).use(${add})`,
  "two.ts": `
    import { AsyncServer } from "skein"
    export { server } from "./server.ts"
    export const other = new AsyncServer({ name: "other", version: "1.0.0" })`,
  "main.ts": "import { server } from \"./server.ts\"\nserver.runStdio()",
  "none.ts": "import { tool } from \"skein\"\nexport const greet = tool(\"greet\", {}, () => \"hello\")",
  "tools/add.ts": `
    import { tool } from "skein"
    import { z } from "zod"
    export const helper = 1
    export const add = ${add}`,
  "tools/greet.ts": "import { tool } from \"skein\"\nexport default tool(\"greet\", {}, () => \"hello\")",
  "twice/one.ts": "import { tool } from \"skein\"\nexport default tool(\"greet\", {}, () => \"one\")",
  "twice/two.ts": "import { tool } from \"skein\"\nexport default tool(\"greet\", {}, () => \"two\")",
  "whole/server.ts": "export { server } from \"../server.ts\"",
  "mixed/one.ts": "import { tool } from \"skein\"\nexport default tool(\"greet\", {}, () => \"one\")",
  "mixed/two.ts": "export const layer = { \"~effect/Layer\": {} }",
  "bare/one.ts": "import { tool } from \"skein\"\nexport const text = typeof tool"
}

beforeAll(async () => {
  project = await makeProject({})
  const modules = join(project.folder, "node_modules")
  const root = join(import.meta.dirname, "../../../..")
  await rm(modules)
  await mkdir(modules)
  await symlink(join(root, "packages/skein"), join(modules, "skein"))
  for (const name of ["zod", "rolldown"]) await symlink(join(root, "node_modules", name), join(modules, name))
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(project.folder, path)), { recursive: true })
    await project.write(path, text)
  }
  shipped = await makeProject({})
  await rm(join(shipped.folder, "node_modules"))
})

afterAll(async () => {
  await project.remove()
  await shipped.remove()
})

const ok = (out: string) => ({ code: 0, out: `${out}\n`, err: "" })

/** Builds a module, and calls the tool `add` of the file in a folder without `node_modules`. */
const callBuilt = async (...args: ReadonlyArray<string>) => {
  const { code, err, out } = await run(project, ["build", "--json", ...args])
  assert.deepStrictEqual([code, err], [0, ""], err)
  const { file } = JSON.parse(out) as { readonly file: string }
  await cp(join(project.folder, file), join(shipped.folder, file), { recursive: true })
  return run(shipped, ["call", asWord([process.execPath, file]), "add", "a=2", "b=3"])
}

describe("a project with the package skein", () => {
  it("is called and inspected by its exported AsyncServer", async () => {
    assert.deepStrictEqual(await run(project, ["call", "server.ts", "add", "a=1", "b=2"]), ok("3"))
    const { code, out } = await run(project, ["inspect", "--export", "other", "two.ts"])
    assert.strictEqual(code, 0)
    assert.match(out, /^other 1\.0\.0\n/)
  })

  it("is called by a folder of definitions", async () => {
    assert.deepStrictEqual(await run(project, ["call", "tools", "add", "a=1", "b=3"]), ok("4"))
    assert.deepStrictEqual(await run(project, ["call", "tools", "greet"]), ok("hello"))
  })

  it("is served by skein dev", async () => {
    const command = asWord([process.execPath, ...program, "dev", "server.ts"])
    assert.deepInclude(await run(project, ["call", command, "add", "a=4", "b=5"]), { code: 0, out: "9\n" })
  })

  it("is bundled into one file: a server, a program, and a folder", async () => {
    assert.deepStrictEqual(await callBuilt("server.ts", "--export=server"), ok("5"))
    assert.deepStrictEqual(await callBuilt("main.ts"), ok("5"))
    assert.deepStrictEqual(await callBuilt("tools"), ok("5"))
  })

  it("is described for a bundle of a host", async () => {
    await project.write("package.json", JSON.stringify({ name: "project", type: "module", author: "Ada" }))
    const { code, err, out } = await run(project, ["build", "--json", "--mcpb", "--export=server", "server.ts"])
    assert.deepStrictEqual([code, err], [0, ""])
    const { bundle } = JSON.parse(out) as { readonly bundle: { readonly file: string } }
    assert.strictEqual(bundle.file, join("dist", "server.mcpb"))
  })

  it("reports a module or a folder without a server of it", async () => {
    const reports: ReadonlyArray<readonly [string, RegExp]> = [
      ["none.ts", /The module none\.ts exports no server, which is .*: its exports are greet/],
      ["two.ts", /exports several layers, select one with --export: other, server/],
      ["twice", /The module twice\/two\.ts cannot be served: .*greet.*, in twice\/one\.ts/],
      ["whole", /The module whole\/server\.ts exports a server: in a folder/],
      [
        "mixed",
        /The module mixed\/two\.ts exports a definition of @skein\/server, and skein serves the folder: /
      ],
      ["bare", /The module bare\/one\.ts exports no definition \(of tool, .*its exports are text/]
    ]
    for (const [module, report] of reports) {
      const { code, err } = await run(project, ["run", module])
      assert.strictEqual(code, 2, err)
      assert.match(err, report)
    }
  })
})
