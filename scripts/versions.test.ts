import { execFileSync } from "node:child_process"
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { describe, expect, it } from "vitest"
import { bundled, packages, root } from "./build.ts"
import { inSources, replace } from "./versions.ts"

interface Manifest {
  readonly name: string
  readonly version?: string
  readonly private?: boolean
  readonly workspaces?: ReadonlyArray<string>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

const json = <A>(path: string): A => JSON.parse(readFileSync(join(root, path), "utf8")) as A
const main = json<Manifest>("package.json")
const folders = main.workspaces!.flatMap((folder) =>
  folder === "packages/*" ? readdirSync(join(root, "packages")).map((name) => `packages/${name}`) : [folder]
)
const workspaces = folders.map((folder) => [folder, json<Manifest>(`${folder}/package.json`)] as const)
const published = workspaces.filter(([, manifest]) => manifest.private !== true).map(([folder]) => folder)

describe("the version", () => {
  it("is the same in the root, in all packages, in their ranges and in their sources", () => {
    for (
      const [folder, { dependencies, devDependencies, peerDependencies, private: isPrivate, version }] of workspaces
    ) {
      expect([folder, version]).toEqual([folder, isPrivate === true ? undefined : main.version])
      for (const [name, range] of Object.entries({ ...dependencies, ...devDependencies, ...peerDependencies })) {
        if (name === "skein" || name.startsWith("@skein/")) {
          expect([folder, name, range]).toEqual([folder, name, main.version])
        }
      }
    }
    const sources = inSources(root)
    expect(sources.map(([file]) => file.split("/")[1])).toEqual(["apps", "apps", "cli", "client", "client"])
    expect(sources.filter(([, version]) => version !== main.version)).toEqual([])
  })

  it("is replaced in the root and in the sources", () => {
    const folder = mkdtempSync(join(tmpdir(), "skein-versions-"))
    try {
      cpSync(join(root, "package.json"), join(folder, "package.json"))
      for (const [file] of inSources(root)) cpSync(join(root, file), join(folder, file))
      execFileSync("git", ["init", "--quiet"], { cwd: folder })
      execFileSync("git", ["add", "."], { cwd: folder })
      replace(folder, "1.2.3-beta.4")
      expect(inSources(folder)).toEqual(inSources(root).map(([file]) => [file, "1.2.3-beta.4"]))
      expect(readFileSync(join(folder, "package.json"), "utf8")).toBe(
        readFileSync(join(root, "package.json"), "utf8").replace(
          `"version": "${main.version}"`,
          "\"version\": \"1.2.3-beta.4\""
        )
      )
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe("the changesets", () => {
  it("give all published packages one version, and the others none", () => {
    const { fixed } = json<{ readonly fixed: ReadonlyArray<ReadonlyArray<string>> }>(".changeset/config.json")
    const others = workspaces.filter(([, manifest]) => manifest.private === true).map(([, { name }]) => `!${name}`)
    expect(fixed).toEqual([["@skein/*", "create-skein", "skein", ...others.toSorted()]])
  })

  it("know the packages that npm run build builds", () => {
    expect(published.map((folder) => basename(folder)).toSorted()).toEqual(
      [...packages, bundled].map((folder) => basename(folder)).toSorted()
    )
  })
})
