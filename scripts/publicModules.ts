/**
 * The public modules of a package, from the `exports` of its `package.json`.
 *
 * A package without folders has the one entry `./*`: each module directly in `src` is public. In a package whose sources
 * are in folders (`src/client`, `src/server`), each public module has an entry of its own, so that its import path does
 * not contain the folder: `@skein/auth/OAuth` is `src/client/OAuth.ts`.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** A public module of a package. */
export interface PublicModule {
  /** The name in its import path, as in `@skein/auth/OAuth`. */
  readonly name: string
  /** The path in `src` without the extension, as in `client/OAuth`. */
  readonly path: string
}

type Exports = Readonly<Record<string, string | null | Readonly<Record<string, string>>>>

const source = "@skein/source"

/** Returns the public modules of the package in a folder, sorted by name. */
export const publicModules = (folder: string): ReadonlyArray<PublicModule> => {
  const { exports = {} } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    readonly exports?: Exports
  }
  const found = Object.entries(exports).flatMap(([subpath, target]): ReadonlyArray<PublicModule> => {
    const file = typeof target === "object" ? target?.[source] : undefined
    if (file === undefined) return []
    // The entry of the package itself has the name of its file, `index`.
    if (subpath === ".") return [{ name: "index", path: file.slice("./src/".length, -".ts".length) }]
    if (subpath !== "./*") {
      return [{ name: subpath.slice("./".length), path: file.slice("./src/".length, -".ts".length) }]
    }
    return modulesIn(join(folder, "src")).map((name) => ({ name, path: name }))
  })
  return found.toSorted((one, other) => one.name < other.name ? -1 : 1)
}

const modulesIn = (folder: string): ReadonlyArray<string> =>
  (existsSync(folder) ? readdirSync(folder) : [])
    .filter((file) => file.endsWith(".ts"))
    .map((file) => file.slice(0, -".ts".length))
