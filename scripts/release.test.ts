import { spawn } from "node:child_process"
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"

let root: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "skein-release-test-"))
  await write("package.json", JSON.stringify({ name: "root", version: "0.2.0", private: true }))
  await write("CHANGELOG.md", "# Changelog\n\n## [0.2.0] - 2026-11-29\n")
  await add("above", { dependencies: { "@skein/below": "0.2.0" }, devDependencies: { "@skein/beside": "0.2.0" } })
  await add("below")
  await add("beside", { peerDependencies: { "@skein/below": "0.2.0", effect: "^4.1.0" } })
  await add("hidden", { private: true })
})
afterEach(() => rm(root, { recursive: true }))

const write = async (path: string, text: string): Promise<void> => {
  await mkdir(dirname(join(root, path)), { recursive: true })
  await writeFile(join(root, path), text)
}

/** Adds a built package to the repository. */
const add = async (name: string, manifest: object = {}): Promise<void> => {
  const members = {
    name: `@skein/${name}`,
    version: "0.2.0",
    repository: { type: "git", url: "git+https://github.com/skein-mcp/skein.git" },
    files: ["dist"],
    publishConfig: { access: "public" },
    ...manifest
  }
  await write(`packages/${name}/package.json`, JSON.stringify(members))
  await write(`packages/${name}/dist/index.js`, "export {}\n")
  for (const file of ["LICENSE", "README.md"]) await write(`packages/${name}/${file}`, `${file} of ${name}\n`)
}

/** Runs the script outside of GitHub Actions, unless variables say otherwise. */
const release = async (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) => {
  const { ACTIONS_ID_TOKEN_REQUEST_URL: _, GITHUB_REF_NAME: __, GITHUB_REF_TYPE: ___, ...others } = process.env
  const child = spawn(process.execPath, [join(import.meta.dirname, "release.ts"), "--root", root, ...args], {
    env: { ...others, ...env },
    stdio: ["ignore", "pipe", "pipe"]
  })
  let [stdout, stderr] = ["", ""]
  child.stdout.setEncoding("utf8").on("data", (text: string) => stdout += text)
  child.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text)
  const code = await new Promise((resolve) => child.on("close", resolve))
  return { code, stderr, lines: stdout.split("\n").map((line) => line.trimEnd().replaceAll(/ +/g, " ")) }
}

const problems = (stderr: string) => stderr.split("\n").slice(0, -2)

describe("npm run release", { timeout: 300_000 }, () => {
  it("--dry-run prints each public package and its files, after those that it needs, and publishes nothing", async () => {
    const { code, lines, stderr } = await release(["--dry-run", "--files"])
    expect(stderr).toBe("")
    expect(lines.slice(0, 9).map((line) => line.replaceAll(/[\d.]+ kB/g, "… kB"))).toEqual([
      "package version tag access provenance files packed unpacked",
      "@skein/below 0.2.0 latest public yes 4 … kB … kB",
      "@skein/above 0.2.0 latest public yes 4 … kB … kB",
      "@skein/beside 0.2.0 latest public yes 4 … kB … kB",
      "",
      "@skein/below",
      " LICENSE",
      " README.md",
      " dist/index.js"
    ])
    expect(lines.slice(-3)).toEqual(["", "3 packages can be published, in this order. Nothing was published.", ""])
    expect(code).toBe(0)
  })

  it("gives a prerelease a tag of its own", async () => {
    await rm(join(root, "packages"), { recursive: true })
    await add("below", { version: "0.3.0-beta.1" })
    await write("package.json", JSON.stringify({ name: "root", version: "0.3.0-beta.1" }))
    await write("CHANGELOG.md", "## [0.3.0-beta.1] - 2026-12-24\n")
    expect((await release(["--dry-run"])).lines[1]).toContain("@skein/below 0.3.0-beta.1 beta public yes")
  })

  it("refuses packages that are not fit to be published, with all reasons", async () => {
    await add("above", { version: "0.1.0", dependencies: { "@skein/below": "^0.1.0" }, publishConfig: {} })
    await rm(join(root, "packages/below/dist"), { recursive: true })
    await rm(join(root, "packages/below/LICENSE"))
    await add("beside", { repository: undefined })
    await write("CHANGELOG.md", "## [Unreleased]\n")
    const { code, stderr } = await release(["--dry-run"])
    expect(problems(stderr)).toEqual([
      "CHANGELOG.md has no dated section ## [0.2.0] - YYYY-MM-DD",
      "@skein/below contains no dist: run npm run build",
      "@skein/below contains no LICENSE",
      "@skein/above has version 0.1.0, and the root has 0.2.0",
      "@skein/above depends on @skein/below ^0.1.0 instead of 0.2.0",
      "@skein/above is not public: publishConfig.access must be \"public\"",
      "@skein/beside names no repository, which provenance requires"
    ])
    expect(code).toBe(1)
  })

  it("refuses a tag that is not the version", async () => {
    for (const name of ["above", "beside"]) await rm(join(root, "packages", name), { recursive: true })
    const { code, stderr } = await release(["--dry-run"], { GITHUB_REF_TYPE: "tag", GITHUB_REF_NAME: "v0.3.0" })
    expect(problems(stderr)).toEqual(["the tag is v0.3.0 instead of v0.2.0"])
    expect(code).toBe(1)
  })

  it("refuses to publish without the identity of a job", async () => {
    for (const name of ["above", "beside"]) await rm(join(root, "packages", name), { recursive: true })
    const { code, stderr } = await release([])
    expect(problems(stderr)).toEqual([
      "provenance needs a job of GitHub Actions with the permission id-token: write; use --dry-run here"
    ])
    expect(code).toBe(1)
  })
})
