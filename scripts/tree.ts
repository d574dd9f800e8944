/**
 * What the linter cannot see, over all tracked files: no text file is longer than 500 lines, and the lock file names packages
 * by version and hash only, so that it installs the same from whatever registry a machine uses, and names the optional
 * packages of every platform.
 */
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** A file may have this many lines. */
export const maxLines = 500

const lock = "package-lock.json"

interface Lock {
  readonly packages?: Readonly<Record<string, { readonly optionalDependencies?: Readonly<Record<string, string>> }>>
}

/**
 * What is wrong with the lock file. Where a registry lacks a package for another platform, npm leaves it out of the lock, and
 * `npm ci` then fails everywhere: such an entry is added by hand, with its version, `os`, `cpu` and `optional`.
 */
const lockComplaint = (text: string): string | undefined => {
  const found = /"resolved": "https?:[^"]*"/.exec(text)
  if (found !== null) return `${lock}: names a registry (${found[0]}): set omit-lockfile-registry-resolved`
  const packages = (JSON.parse(text) as Lock).packages ?? {}
  const missing = Object.entries(packages).flatMap(([at, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter((name) =>
      packages[`node_modules/${name}`] === undefined && packages[`${at}/node_modules/${name}`] === undefined
    )
  )
  return missing.length === 0 ? undefined : `${lock}: lacks ${missing.join(", ")}`
}

/** The complaint about one file, or `undefined`. Bytes with a NUL are not text. */
export const complaint = (path: string, bytes: Buffer): string | undefined => {
  if (path === lock) return lockComplaint(bytes.toString("utf8"))
  if (bytes.includes(0)) return undefined
  const lines = bytes.toString("utf8").split("\n").length - (bytes.at(-1) === 10 ? 1 : 0)
  return lines > maxLines ? `${path}: ${lines} lines, and ${maxLines} is the limit: split it by concept` : undefined
}

/** Every complaint about the tracked files under a folder. */
export const complaints = (root: string): ReadonlyArray<string> =>
  execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" })
    .split("\0")
    // A tracked file that was removed but not yet committed has nothing to check.
    .filter((path) => path !== "" && existsSync(join(root, path)))
    .flatMap((path) => complaint(path, readFileSync(join(root, path))) ?? [])

if (import.meta.main) {
  const found = complaints(join(import.meta.dirname, ".."))
  for (const text of found) console.error(text)
  process.exitCode = found.length === 0 ? 0 : 1
}
