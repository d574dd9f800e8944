/** Packages that share Effect with an application do not bring copies of their own. */
import { describe, expect, it } from "@effect/vitest"
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { checkCopies, findCopies } from "./peers.ts"

type Ranges = Readonly<Record<string, string>>
interface Manifest {
  readonly name: string
  readonly dependencies?: Ranges
  readonly devDependencies?: Ranges
  readonly peerDependencies?: Ranges
}

const root = join(import.meta.dirname, "..")
const packages = globSync("packages/*/package.json", { cwd: root }).map((path) => {
  const sources = globSync("src/**/*.ts", { cwd: join(root, dirname(path)) })
    .map((file) => readFileSync(join(root, dirname(path), file), "utf8"))
  const manifest = JSON.parse(readFileSync(join(root, path), "utf8")) as Manifest
  // The package skein contains Effect.
  const isBundled = manifest.name === "skein"
  return {
    ...manifest,
    imports: (name: string) => !isBundled && sources.some((text) => text.includes(`from "${name}/`))
  }
})
const tested = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest

describe.each(["effect", "@effect/platform-node"])("%s", (shared) => {
  const users = packages.filter(({ imports }) => imports(shared))

  it("is a peer of every package that imports it, in the range ^4.1.0", () => {
    expect(users.length).toBeGreaterThan(1)
    expect(users.map(({ name, peerDependencies }) => [name, peerDependencies?.[shared]])).toEqual(
      users.map(({ name }) => [name, "^4.1.0"])
    )
  })

  it("is not a dependency of any package", () => {
    expect(packages.filter(({ dependencies }) => dependencies?.[shared] !== undefined)).toEqual([])
  })

  it("is tested in the version of this repository", () => {
    expect(new Set(users.map(({ devDependencies }) => devDependencies?.[shared])))
      .toEqual(new Set([tested.devDependencies![shared]]))
  })
})

describe("findCopies", () => {
  it("returns shared packages that are installed twice, and no others", () => {
    const project = mkdtempSync(join(tmpdir(), "skein-peers-"))
    const install = (path: string, version: string) => {
      const folder = join(project, "node_modules", path)
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, "package.json"), JSON.stringify({ version }))
    }
    try {
      for (const path of ["effect", "@skein/server", "undici", "@skein/server/node_modules/undici"]) {
        install(path, "4.1.0")
      }
      expect(findCopies(project)).toEqual([])
      install("@skein/server/node_modules/effect", "4.2.0")
      expect(findCopies(project)).toEqual([expect.stringMatching(/^effect: 4\.[12]\.0, 4\.[12]\.0$/)])
      expect(() => checkCopies(project)).toThrow("has several copies of\neffect: ")
    } finally {
      rmSync(project, { recursive: true, force: true })
    }
  })
})
