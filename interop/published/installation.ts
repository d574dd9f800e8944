/**
 * The installation of `interop/published`: programs of other authors, with versions and a lock file of their own, so
 * that `npm ci` at the root does not download them. `npm run published` installs them.
 */
import { existsSync, mkdtempSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const folder = dirname(fileURLToPath(import.meta.url))

const json = (path: string): Record<string, unknown> =>
  JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>

/** The versions of `package.json` by the name of the installed folder. Aliases are `npm:<package>@<version>`. */
export const pinned = json(join(folder, "package.json"))["dependencies"] as Readonly<Record<string, string>>

const folderOf = (name: string): string => join(folder, "node_modules", name)

const isInstalled = (name: string): boolean =>
  existsSync(join(folderOf(name), "package.json")) &&
  json(join(folderOf(name), "package.json"))["version"] === pinned[name]!.replace(/^npm:.+@/, "")

/**
 * The reason to skip the tests: some of these packages are missing or have other versions. With `CI` set, a missing
 * installation is an error instead.
 */
export const missingOf = (names: ReadonlyArray<string>): string | undefined => {
  const absent = names.filter((name) => !isInstalled(name))
  if (absent.length === 0) return undefined
  const message = `${absent.length} published packages are not installed (${absent[0]}, …): run npm run published`
  if (process.env["CI"] !== undefined) throw new Error(message)
  return message
}

/** The reason to skip the tests that need all packages. */
export const missing = missingOf(Object.keys(pinned))

/** The path of a file of an installed package: by default its program, the first one of its `bin`. */
export const program = (name: string, file?: string): string => {
  if (file !== undefined) return join(folderOf(name), file)
  const declared = json(join(folderOf(name), "package.json"))["bin"] as string | Readonly<Record<string, string>>
  return join(folderOf(name), typeof declared === "string" ? declared : Object.values(declared)[0]!)
}

/** An empty folder, the home and working directory of a program. */
export const emptyHome = (): string => mkdtempSync(join(tmpdir(), "skein-published-"))
