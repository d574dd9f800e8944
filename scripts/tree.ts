/**
 * Checks of all tracked files that the linter cannot make: the length of files, and the lock file.
 *
 * The lock file names packages by version and hash only, so that an installation does not depend on a registry. It
 * includes the optional packages of every platform.
 */
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** A text file with more lines than this fails the check. */
export const maxLines = 800

/** A module of a package's `src` above this number of lines causes a warning: it may contain more than one concept. */
export const largeModuleLines = 500

/**
 * An internal module of a package's `src` fails the check with fewer lines than this. Public modules, which have a capital
 * name and are not in a folder `internal`, and the programs in `bin` may be shorter.
 */
export const minModuleLines = 30

const lock = /(^|\/)package-lock\.json$/
/** Grafana imports a dashboard as one document, which has a line per member. */
const dashboard = /^docs\/grafana\/.+\.json$/

/** The pages of `npm run messages`, one for each package. A script writes them. */
const messagesPage = /^docs\/messages\//
const packageModule = /^packages\/[^/]+\/src\/.+\.ts$/
const internalModule = /^packages\/[^/]+\/src\/(?!bin\/)(?:.*\/[^A-Z/][^/]*|(?:.*\/)?internal\/.*)\.ts$/

interface Lock {
  readonly packages?: Readonly<Record<string, { readonly optionalDependencies?: Readonly<Record<string, string>> }>>
}

/**
 * The problem of the lock file. If a registry lacks the package of another platform, npm leaves it out of the lock
 * file, and `npm ci` then fails on every machine. Add such an entry by hand, with its version, `os`, `cpu` and
 * `optional`.
 */
const lockProblem = (path: string, text: string): string | undefined => {
  const found = /"resolved": "https?:[^"]*"/.exec(text)
  if (found !== null) {
    return `${path}: contains the address of a registry (${found[0]}): set omit-lockfile-registry-resolved`
  }
  const packages = (JSON.parse(text) as Lock).packages ?? {}
  const missing = Object.entries(packages).flatMap(([at, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter((name) =>
      packages[`node_modules/${name}`] === undefined && packages[`${at}/node_modules/${name}`] === undefined
    )
  )
  return missing.length === 0 ? undefined : `${path}: lacks ${missing.join(", ")}`
}

const lineCount = (bytes: Buffer): number => bytes.toString("utf8").split("\n").length - (bytes.at(-1) === 10 ? 1 : 0)

/** Returns the warning about one file, or `undefined`. */
export const warning = (path: string, bytes: Buffer): string | undefined => {
  const lines = lineCount(bytes)
  return packageModule.test(path) && lines > largeModuleLines
    ? `${path}: warning: ${lines} lines are more than ${largeModuleLines}: consider splitting the module by concept`
    : undefined
}

/** Returns the problem of one file, or `undefined`. A file with a NUL byte is binary and has no lines. */
export const problem = (path: string, bytes: Buffer): string | undefined => {
  if (lock.test(path)) return lockProblem(path, bytes.toString("utf8"))
  if (bytes.includes(0) || dashboard.test(path) || messagesPage.test(path)) return undefined
  const lines = lineCount(bytes)
  if (lines > maxLines) return `${path}: ${lines} lines exceed the limit of ${maxLines}: split the file by concept`
  const isShort = internalModule.test(path) && lines < minModuleLines
  return isShort
    ? `${path}: ${lines} lines are fewer than ${minModuleLines}: move them to the module that uses them`
    : undefined
}

type Check = (path: string, bytes: Buffer) => string | undefined

/** Applies a check to all tracked files under a folder, and returns its messages. */
export const checkFiles = (root: string, check: Check): ReadonlyArray<string> =>
  execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" })
    .split("\0")
    // A tracked file may be deleted and the deletion not yet committed.
    .filter((path) => path !== "" && existsSync(join(root, path)))
    .flatMap((path) => check(path, readFileSync(join(root, path))) ?? [])

if (import.meta.main) {
  const root = join(import.meta.dirname, "..")
  for (const text of checkFiles(root, warning)) console.warn(text)
  const found = checkFiles(root, problem)
  for (const text of found) console.error(text)
  process.exitCode = found.length === 0 ? 0 : 1
}
