/**
 * What the linter cannot see, over all tracked files: no text file is longer than 500 lines, and the lock file names packages
 * by version and hash only, so that it installs the same from whatever registry a machine uses.
 */
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** A file may have this many lines. */
export const maxLines = 500

const lock = "package-lock.json"

/** The complaint about one file, or `undefined`. Bytes with a NUL are not text. */
export const complaint = (path: string, bytes: Buffer): string | undefined => {
  if (path === lock) {
    const found = /"resolved": "https?:[^"]*"/.exec(bytes.toString("utf8"))
    return found === null ? undefined : `${path}: names a registry (${found[0]}): set omit-lockfile-registry-resolved`
  }
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
