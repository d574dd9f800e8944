/** Which modules of a folder make a server, and which words of a command line are a folder. */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { readFolder } from "../src/internal/develop/nodeFolder.ts"
import { isModule } from "../src/internal/base/nodeFiles.ts"
import { CommandFailed } from "../src/internal/base/process.ts"

let folder = ""
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "skein-folder-"))))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const write = (...files: ReadonlyArray<string>): void => {
  for (const file of files) {
    mkdirSync(join(folder, file, ".."), { recursive: true })
    writeFileSync(join(folder, file), "")
  }
}

const read = () => readFolder(folder, { module: "tools", exportName: undefined })!

/** How the folder is refused. */
const failure = (): CommandFailed => {
  try {
    read()
  } catch (error) {
    if (error instanceof CommandFailed) return error
    throw error
  }
  return assert.fail("the folder was read")
}

describe("a folder of modules", () => {
  it("has the modules of its subfolders in the order of their paths, without tests, declarations and hidden names", () => {
    write(
      "b.ts",
      "a.js",
      "B.mts",
      "a/c.mjs",
      "a-b/d.ts",
      "a.test.ts",
      "a.spec.mjs",
      "a.d.ts",
      "a.d.mts",
      "a.cjs",
      "a.tsx"
    )
    write("_e.ts", ".f.ts", "_g/h.ts", ".i/j.ts", "node_modules/k/index.js", "a/node_modules/l.js", "menu.json")
    assert.deepStrictEqual(read().modules.map(({ path }) => path), [
      "tools/B.mts",
      "tools/a-b/d.ts",
      "tools/a.js",
      "tools/a/c.mjs",
      "tools/b.ts"
    ])
    assert.strictEqual(read().modules[0]!.file, join(folder, "B.mts"))
  })

  it("is named after the nearest package.json, or after itself", () => {
    write("one.ts")
    assert.include(read(), { name: basename(folder), version: "0.0.0" })
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "@tea/house", version: "2.1.0" }))
    assert.include(read(), { name: "@tea/house", version: "2.1.0" })
    for (const manifest of ["null", "[]", "{\"name\":1,\"version\":\"\"}"]) {
      writeFileSync(join(folder, "package.json"), manifest)
      assert.include(read(), { name: basename(folder), version: "0.0.0" })
    }
    writeFileSync(join(folder, "package.json"), "{")
    assert.match(failure().report!, /package\.json cannot be read: /)
  })

  it("has 1,000 modules at most", () => {
    write(...Array.from({ length: 1_000 }, (_, at) => `m${at}.js`))
    assert.lengthOf(read().modules, 1_000)
    write("deep/one.js")
    assert.deepInclude(failure(), { exitCode: 2, report: "The folder tools has more than 1000 modules" })
  })

  it("has 1,000 folders at most, itself included", () => {
    write("one.js", ...Array.from({ length: 999 }, (_, at) => `f${at}/notes.txt`))
    assert.lengthOf(read().modules, 1)
    mkdirSync(join(folder, "f0/deep"))
    assert.deepInclude(failure(), { exitCode: 2, report: "The folder tools has more than 1000 folders" })
  })

  it.skipIf(process.platform === "win32")("ignores links to other files and to nothing, and refuses the rest", () => {
    write("one.ts", "menu.json")
    symlinkSync("menu.json", join(folder, "linked.json"))
    symlinkSync("nothing", join(folder, "nowhere"))
    symlinkSync("..", join(folder, "_up"))
    assert.lengthOf(read().modules, 1)
    symlinkSync("..", join(folder, "up"))
    assert.deepInclude(failure(), {
      exitCode: 2,
      report:
        "tools/up is a symbolic link, which is not followed: move the file into the folder, or let the name begin with _"
    })
    unlinkSync(join(folder, "up"))
    symlinkSync("one.ts", join(folder, "two.ts"))
    assert.match(failure().report!, /^tools\/two\.ts is a symbolic link/)
  })

  it("is a word of a command line with a separator, or that no program has as its name", () => {
    const { PATH } = process.env
    const cwd = process.cwd()
    try {
      write("tools/one.ts", "node/one.ts", "bin/node")
      process.chdir(folder)
      process.env["PATH"] = join(folder, "bin")
      for (const word of ["tools", "tools/", "./tools", "./node", ".", join(folder, "node")]) {
        assert.isTrue(isModule(word), word)
      }
      for (const word of ["node", "none", "./none", "tools one"]) assert.isFalse(isModule(word), word)
    } finally {
      process.chdir(cwd)
      process.env["PATH"] = PATH
    }
  })
})
