/**
 * The files of a project that Node loads, without those of packages.
 */
import { readdirSync, statSync } from "node:fs"
import * as Module from "node:module"
import { join, sep } from "node:path"
import { fileURLToPath } from "node:url"
import { projectFolder } from "../base/nodeProject.ts"

/** Returns the path of a file, which may be a URL, if it belongs to the project in a folder. */
export const projectFile = (folder: string, file: string): string | undefined => {
  const path = file.startsWith("file:") ? fileURLToPath(file) : file
  return path.startsWith(folder + sep) && !path.includes(`${sep}node_modules${sep}`) ? path : undefined
}

/** The file of a module, or the modules in a folder. */
const filesAt = (path: string): ReadonlyArray<string> => {
  if (statSync(path).isFile()) return [path]
  const files = readdirSync(path, { recursive: true, encoding: "utf8" }).map((name) => join(path, name))
  return files.filter((file) => /\.[cm]?[jt]sx?$/.test(file) && projectFile(path, file) !== undefined)
}

// Bun has no hooks. With those of Deno 2.9, a module that `require` loads cannot import others.
const registerHooks = "deno" in process.versions ? undefined : (Module as Partial<typeof Module>).registerHooks

/** A record of the files that are loaded until `stop`. */
export interface Recording {
  /** The files so far. Where there are no hooks: the file of the module, or the modules in its folder. */
  readonly files: () => ReadonlyArray<string>
  readonly stop: () => void
}

/** Records the files that are loaded from the project of a module or of a folder of modules. */
export const recordFiles = (path: string): Recording => {
  const folder = projectFolder(path)
  const files = new Set<string>()
  const hooks = registerHooks?.({
    load: (url, context, next) => {
      const file = projectFile(folder, url)
      if (file !== undefined) files.add(file)
      return next(url, context)
    }
  })
  return { files: () => hooks === undefined ? filesAt(path) : [...files], stop: () => hooks?.deregister() }
}
