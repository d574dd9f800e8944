/**
 * `npm run versions`: gives all packages the version that the changesets in `.changeset` ask for.
 *
 * `changeset version` changes the packages, and the ranges with which they depend on each other. This script then
 * changes the root, and the versions in sources: programs do not read a `package.json` when they start. At last npm
 * changes the lock file.
 */
import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** A version in a source: the default name of a client or host, and the constant that a program prints. */
const literal = /(name: "skein", version: "|export const version = ")(\d+\.\d+\.\d+[^"]*)/g

const read = (root: string, path: string): string => readFileSync(join(root, path), "utf8")

const sources = (root: string): ReadonlyArray<string> =>
  execFileSync("git", ["ls-files", "-z", "packages/*/src/*.ts"], { cwd: root, encoding: "utf8" }).split("\0").slice(
    0,
    -1
  )

/** Returns the versions in the sources of the packages, each with its file. */
export const inSources = (root: string): ReadonlyArray<readonly [file: string, version: string]> =>
  sources(root).flatMap((file) =>
    Array.from(read(root, file).matchAll(literal), ([, , version]) => [file, version!] as const)
  )

/** Replaces the version of the root, and those in the sources. */
export const replace = (root: string, version: string): void => {
  const manifest = read(root, "package.json")
  writeFileSync(join(root, "package.json"), manifest.replace(/("version": ")[^"]*/, `$1${version}`))
  for (const [file] of inSources(root)) {
    writeFileSync(join(root, file), read(root, file).replaceAll(literal, `$1${version}`))
  }
}

if (import.meta.main) {
  const root = join(import.meta.dirname, "..")
  const { version } = JSON.parse(read(root, "packages/protocol/package.json")) as { readonly version: string }
  replace(root, version)
  console.log(`all packages have version ${version}: date its section in CHANGELOG.md`)
}
