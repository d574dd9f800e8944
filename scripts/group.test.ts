/** Groups the modules of two small packages, and runs the result from `node_modules`, like installed packages. */
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { annotate } from "./annotate.ts"
import { type File, group, groups, type Package, read, reexports } from "./group.ts"
import { leftover } from "./leftover.ts"

const low = {
  Word: "export class Word { text = \"word\" }\n",
  Sign: "import { Word } from \"./Word.js\"\nexport class Sign extends Word {}\n",
  Model: "import * as Schema from \"effect/Schema\"\nexport const model = Schema.String\n",
  Form: "import { model } from \"./Model.js\"\nexport const name = \"form\"\nexport const form = () => model\n",
  Spare: "import { Word } from \"./Word.js\"\nexport const spare = new Word()\n"
}

const high = {
  Start: "import { form } from \"./internal/form.js\"\nimport { make } from \"./internal/make.js\"\n" +
    "/** Creates the values. */\nexport const start = () => [form, make(\"start\")]\n",
  Lazy: "import { Failure } from \"./Failure.js\"\nexport const failure = () => new Failure()\n" +
    "export const late = () => import(\"./Late.js\")\n",
  Above: "import { failure } from \"./Lazy.js\"\nexport const above = () => failure()\n",
  Failure: "export class Failure extends Error { static { this.title = \"failure\" } }\n",
  Other: "import { make } from \"./internal/shared.js\"\nexport const other = () => make()\n",
  OnNode: "import \"node:os\"\nimport { make } from \"./internal/shared.js\"\nexport const onNode = () => make()\n",
  Late: "import { Failure } from \"./Failure.js\"\nexport const late = () => new Failure()\n",
  Types: "export {}\n",
  "internal/form": "import * as Form from \"@skein/low/Form\"\nimport { model } from \"@skein/low/Model\"\n" +
    "export const form = Form.form() === model ? Form.name : \"\"\n",
  "internal/make": "import { Sign } from \"@skein/low/Sign\"\nimport { Failure } from \"../Failure.js\"\n" +
    "export const make = (name) => name === \"\" ? new Failure() : new Sign()\n",
  "internal/shared": "export const make = () => \"shared\"\n",
  "bin/run": "#!/usr/bin/env node\nimport { start } from \"../Start.js\"\nconsole.log(start().length)\n"
}

let project = ""
const folderOf = (name: string): string => join(project, "node_modules/@skein", name)
const put = (path: string, text: string): void => {
  const to = join(project, "node_modules/@skein", path)
  mkdirSync(dirname(to), { recursive: true })
  writeFileSync(to, text)
}

/** Writes the source of each module, the code that a compiler would write, and a source map by line. */
const write = (name: string, modules: Readonly<Record<string, string>>): void => {
  rmSync(folderOf(name), { recursive: true, force: true })
  put(
    `${name}/package.json`,
    JSON.stringify({
      name: `@skein/${name}`,
      type: "module",
      sideEffects: false,
      exports: { "./*": { "@skein/source": "./src/*.ts", default: "./dist/*.js" } }
    })
  )
  for (const [module, code] of Object.entries(modules)) {
    const up = "../".repeat(module.split("/").length)
    const mappings = code.trim().split("\n").map((_, line) => line === 0 ? "AAAA" : "AACA").join(";")
    put(`${name}/src/${module}.ts`, code)
    put(`${name}/.tsbuild/${module}.js`, `${code}//# sourceMappingURL=x.js.map\n`)
    put(
      `${name}/.tsbuild/${module}.js.map`,
      JSON.stringify({ version: 3, names: [], sources: [`${up}src/${module}.ts`], mappings })
    )
  }
}

const groupAll = async (packages: ReadonlyArray<Package>): Promise<Readonly<Record<string, ReadonlyArray<File>>>> => {
  const found = groups(packages, { high: ["Start", "Above"] })
  const [below, above] = packages
  const lowFiles = await group(below!, found.get("low")!, new Map())
  const highFiles = await group(above!, found.get("high")!, reexports(below!.folder, lowFiles))
  return { low: lowFiles, high: highFiles }
}

const readAll = (): Promise<ReadonlyArray<Package>> => Promise.all([read(folderOf("low")), read(folderOf("high"))])

let files: Readonly<Record<string, ReadonlyArray<File>>> = {}
beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), "skein-group-"))
  write("low", low)
  write("high", high)
  put("../effect/package.json", JSON.stringify({ name: "effect", type: "module", exports: { "./*": "./*.js" } }))
  put("../effect/Schema.js", "export const String = \"schema\"\n")
  files = await groupAll(await readAll())
  for (const name of ["low", "high"]) {
    for (const { code, map, path } of files[name]!) {
      put(`${name}/dist/${path}`, `${(await annotate(code, path, map)).code}\n`)
    }
  }
})
afterAll(() => rmSync(project, { recursive: true, force: true }))

const of = (name: string, path: string): File => files[name]!.find((file) => file.path === path)!

const run = (program: string): unknown => {
  const args = ["--input-type=module", "--eval", program]
  return JSON.parse(execFileSync(process.execPath, args, { cwd: project, encoding: "utf8" }))
}

/** The files that a program loads, without extension: `low/internal/core`, and `effect` for each file of Effect. */
const loadedBy = (program: string): unknown =>
  run(`
    import { registerHooks } from "node:module"
    const loaded = []
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) })
    ${program}
    const names = loaded.map((url) => /@skein.(.*)[.]js$/.exec(url)?.[1].replace("/dist/", "/") ?? "effect")
    console.log(JSON.stringify(names.toSorted()))
  `)

describe("grouping", () => {
  it("puts the modules that every program loads into core, and those of a lower package without a schema into base", () => {
    expect([...of("high", "internal/core.js").modules].toSorted())
      .toEqual(["Failure", "Start", "internal/form", "internal/make"])
    expect([...of("low", "internal/core.js").modules].toSorted()).toEqual(["Form", "Model"])
    expect([...of("low", "internal/base.js").modules].toSorted()).toEqual(["Sign", "Word"])
  })

  it("keeps a module with a dynamic import, and the modules that import it, out of core", () => {
    expect(of("high", "Lazy.js").modules).toEqual(["Lazy"])
    expect(of("high", "Above.js").modules).toEqual(["Above"])
  })

  it("imports the groups of a lower package, not its public modules", () => {
    expect(loadedBy(`await import("@skein/high/Start")`))
      .toEqual(["effect", "high/Start", "high/internal/core", "low/internal/base", "low/internal/core"])
  })

  it("puts each module into one file at most, and writes a file for each public module", () => {
    for (const [name, modules] of Object.entries({ low, high })) {
      const all = files[name]!.flatMap((file) => file.modules)
      expect(all).toHaveLength(new Set(all).size)
      const named = Object.keys(modules).filter((module) => !module.startsWith("internal/"))
      expect(files[name]!.map(({ path }) => path)).toEqual(expect.arrayContaining(named.map((each) => `${each}.js`)))
    }
  })

  it("keeps shared modules and Node's modules out of core", () => {
    const shared = files["high"]!.find(({ modules }) => modules.includes("internal/shared"))!
    expect(shared.modules).toEqual(["internal/shared"])
    expect(of("high", "OnNode.js").code).toContain("node:os")
    expect(files["high"]!.filter(({ code }) => code.includes("node:os"))).toHaveLength(1)
  })

  it("keeps a dynamic import, by the public name of its module", () => {
    expect(of("high", "Lazy.js").code).toContain("import(\"./Late.js\")")
    expect(of("high", "Late.js").modules).toEqual(["Late"])
  })

  it("does not include modules of another package, and keeps a file for a module outside core", () => {
    expect(of("high", "internal/core.js").code).toContain("from \"@skein/low/internal/core\"")
    expect(of("low", "Spare.js").modules).toEqual(["Spare"])
  })

  it("names the source of each part, and writes an empty module for types", () => {
    const { code } = of("high", "internal/core.js")
    expect(code).toContain("// src/Start.ts")
    expect(code).not.toContain(".tsbuild")
    expect(of("high", "Types.js").code).toBe("export {}\n")
    expect(of("high", "bin/run.js").code).toMatch(/^#!\/usr\/bin\/env node\n/)
  })

  it("writes source maps with paths relative to the file", () => {
    expect(of("high", "internal/core.js").map.sources).toEqual([
      "../../src/Failure.ts",
      "../../src/internal/form.ts",
      "../../src/internal/make.ts",
      "../../src/Start.ts"
    ])
    expect(of("high", "Late.js").map.sources).toEqual(["../src/Late.ts"])
  })

  it("leaves no code in a bundle that does not use it, even for a class with a static block", async () => {
    for (const file of ["high/dist/internal/core.js", "low/dist/internal/base.js", "low/dist/internal/core.js"]) {
      expect(await leftover(folderOf(file))).toBe("")
    }
  })

  it("is ASCII without comments when it is annotated, except for marks and the names of sources", async () => {
    const lines = [
      "// src/Text.ts",
      "/** Shortens a text … */",
      "const cut = (text) => `${text.replace(/[é…]$/u, \"…\")}…\\n`; // …",
      "const rule = new Error(\"😀\");",
      "export { cut, rule };"
    ]
    const { code } = await annotate(lines.join("\n"), "Text.js")
    expect(code.split("\n").slice(0, -1)).toEqual([
      "// src/Text.ts",
      "const cut = text => `${text.replace(/[\\u00e9\\u2026]$/u, \"\\u2026\")}\\u2026\\n`;",
      "const rule = /*#__PURE__*/new Error(\"\\ud83d\\ude00\");",
      "export { cut, rule };"
    ])
  })

  it("returns the same files for the same input", async () => {
    expect(await groupAll(await readAll())).toEqual(files)
  })
})

describe("a grouped package", () => {
  it("exports one class from every module that exports it, with its name", () => {
    expect(run(`
      import { start } from "@skein/high/Start"
      import { late } from "@skein/high/Lazy"
      import { Failure } from "@skein/high/Failure"
      import { Word } from "@skein/low/Word"
      import { spare } from "@skein/low/Spare"
      const failure = (await late()).late()
      console.log(JSON.stringify([
        start()[0], start()[1] instanceof Word, spare instanceof Word, failure instanceof Failure, Failure.name, Failure.title
      ]))
    `)).toEqual(["form", true, true, true, "Failure", "failure"])
    const program = join(folderOf("high"), "dist/bin/run.js")
    expect(execFileSync(process.execPath, [program], { encoding: "utf8" })).toBe("2\n")
  })

  it("does not load a schema with a module that needs none", () => {
    expect(loadedBy(`await import("@skein/low/Sign")`)).toEqual(["low/Sign", "low/internal/base"])
  })
})

describe("a core", () => {
  it("rejects an import of a Node module", async () => {
    const packages = await readAll()
    expect(() => groups(packages, { high: ["OnNode"] })).toThrow("high: OnNode is in the core and imports node:os")
  })
})
