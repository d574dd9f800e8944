/** The layers of `src/internal`: protocol → engine → store → telemetry → text. Imports point down only. */
import { expect, it } from "@effect/vitest"
import { globSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"

const source = join(import.meta.dirname, "../src")

/** The layers, the lowest first. `vocabulary` are the public modules that every layer may import. */
const layers = ["vocabulary", "text", "telemetry", "store", "engine", "protocol", "public"]
const vocabulary = new Set([
  "CurrentTask.ts",
  "TaskAdmin.ts",
  "TaskContext.ts",
  "TaskEngine.ts",
  "TaskError.ts",
  "TaskSchedules.ts",
  "TaskState.ts"
])

const layerOf = (path: string): number => {
  const [, folder = ""] = /^internal\/(\w+)/.exec(path) ?? []
  // It stands on the vocabulary and the texts, and below the store.
  if (path === "Encryption.ts") return layers.indexOf("text")
  return layers.indexOf(vocabulary.has(path) ? "vocabulary" : folder === "" ? "public" : folder)
}

const importsOf = (path: string): ReadonlyArray<string> =>
  Array.from(
    readFileSync(join(source, path), "utf8").matchAll(/^(?:import|export) [^"]*?"(\.[^"]+)"/gm),
    ([, specifier = ""]) => relative(source, join(source, dirname(path), specifier))
  )

const files = globSync("**/*.ts", { cwd: source }).filter((path) => path !== "index.ts")

it("imports of the layers point down only", () => {
  expect(files.filter((path) => layerOf(path) < 0)).toEqual([])
  const upwards = files.flatMap((path) =>
    [...new Set(importsOf(path))]
      .filter((imported) => layerOf(imported) > layerOf(path))
      .map((imported) => `${path} imports ${imported}`)
  )
  expect([...new Set(upwards)]).toEqual([])
})

it("the tasks of 2025-11-25 have one import from the rest", () => {
  const isLegacy = (path: string) => path.startsWith("internal/protocol/legacy/")
  const importers = files.filter((path) => !isLegacy(path) && importsOf(path).some(isLegacy))
  expect(importers).toEqual(["Tasks.ts"])
})
