/** The watcher of `skein dev`, with real files. */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { projectFolder } from "../src/internal/base/nodeProject.ts"
import { watchFiles } from "../src/internal/develop/nodeWatch.ts"
import { until } from "./serverKit.ts"

let folder = ""
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "skein-watch-"))))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const write = (file: string, text = "1"): void => writeFileSync(join(folder, file), text)

/** Watches paths of the folder. Returns what changed, and the warnings. */
const watching = (paths: ReadonlyArray<string>, maxFolders = 1_000) => {
  const changes = new Set<string>()
  const warnings: Array<string> = []
  return Effect.as(
    watchFiles({
      paths: paths.map((path) => join(folder, path)),
      maxFolders,
      onChange: (path) => changes.add(basename(path)),
      warn: (line) => warnings.push(line)
    }),
    { changes, warnings }
  )
}

describe("the watcher of skein dev", () => {
  it.live("reports source files of all folders, new ones too, but not of node_modules, dist and hidden folders", () =>
    Effect.gen(function*() {
      for (const name of ["src", "node_modules", "dist", ".git"]) mkdirSync(join(folder, name))
      const { changes } = yield* watching(["."])
      for (const file of ["node_modules/a.ts", "dist/b.js", ".git/c.ts", "src/data.json", "src/notes.db"]) write(file)
      write("src/server.ts")
      mkdirSync(join(folder, "src/deep"))
      // The folder is watched soon after it was created.
      yield* until(() => {
        write("src/deep/tool.py", String(Math.random()))
        return changes.has("tool.py")
      })
      assert.deepStrictEqual([...changes].toSorted(), ["server.ts", "tool.py"])
    }))

  it.live("reports the files of a folder that is moved there, and a folder that is moved away", () =>
    Effect.gen(function*() {
      const elsewhere = mkdtempSync(join(tmpdir(), "skein-watch-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(elsewhere, { recursive: true })))
      mkdirSync(join(elsewhere, "tools/deep"), { recursive: true })
      writeFileSync(join(elsewhere, "tools/deep/brew.ts"), "1")
      const { changes } = yield* watching(["."])
      renameSync(join(elsewhere, "tools"), join(folder, "tools"))
      yield* until(() => changes.has("brew.ts"))
      changes.clear()
      renameSync(join(folder, "tools"), join(elsewhere, "tools"))
      yield* until(() => changes.has("tools"))
      // The folder is watched when it is there again.
      renameSync(join(elsewhere, "tools"), join(folder, "tools"))
      yield* until(() => changes.has("brew.ts"))
      changes.clear()
      write("tools/deep/stir.ts")
      yield* until(() => changes.has("stir.ts"))
    }).pipe(Effect.scoped))

  it.live("reports a file that is named whatever its extension is, and no other file beside it", () =>
    Effect.gen(function*() {
      write(".env")
      const { changes, warnings } = yield* watching([".env", "none"])
      write("server.ts")
      write(".env", "2")
      yield* until(() => changes.size > 0)
      assert.deepStrictEqual([...changes], [".env"])
      assert.match(warnings[0]!, /none does not exist, and is not watched/)
    }))

  it.live("watches maxFolders folders, and warns about further ones once", () =>
    Effect.gen(function*() {
      for (const name of ["a", "b", "c"]) mkdirSync(join(folder, name))
      const { warnings } = yield* watching(["."], 2)
      assert.strictEqual(warnings.length, 1)
      assert.match(warnings[0]!, /More than 2 folders: .* not watched \(--max-folders\)/)
    }))

  it("finds the folder of the next package.json", () => {
    write("package.json", "{}")
    mkdirSync(join(folder, "src/deep"), { recursive: true })
    assert.strictEqual(projectFolder(join(folder, "src/deep/server.ts")), folder)
    assert.strictEqual(projectFolder(join(folder, "src/deep")), folder)
    assert.strictEqual(projectFolder(folder), folder)
  })
})
