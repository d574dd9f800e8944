/**
 * A folder of modules as a server: which modules it has, and what the server is called.
 */
import { type Dirent, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { isFolder, projectName, readManifest } from "../base/nodeProject.ts"
import { unusableFile } from "./nodeLoadModule.ts"

/** The number of modules that a folder and its subfolders may have. */
const maxModules = 1_000

/** The number of folders that are read: the folder, its subfolders, and theirs. */
const maxFolders = 1_000

/** A module of a folder. */
export interface FolderModule {
  /** Its absolute path. */
  readonly file: string
  /** Its path for messages: that of the folder as it was given, and the path in it. */
  readonly path: string
}

/** A folder of modules. */
export interface ModuleFolder {
  /** The name and the version of the server, from the nearest `package.json`. */
  readonly name: string
  readonly version: string
  readonly modules: ReadonlyArray<FolderModule>
}

const isModuleName = (name: string): boolean =>
  /\.m?[jt]s$/.test(name) && !/\.(?:test|spec)\.m?[jt]s$|\.d\.m?ts$/.test(name)

const isIgnored = (name: string): boolean => /^[._]/.test(name) || name === "node_modules"

const entriesOf = (folder: string): ReadonlyArray<Dirent> => {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    throw unusableFile(`The folder ${folder} cannot be read: ${error instanceof Error ? error.message : error}`)
  }
}

/** The paths of the modules in a folder, with `/` between their parts, in the order of the UTF-16 code units. */
const pathsOf = (folder: string, given: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  let folders = 0
  const visit = (inside: string): void => {
    if (++folders > maxFolders) throw unusableFile(`The folder ${given} has more than ${maxFolders} folders`)
    for (const entry of entriesOf(join(folder, inside))) {
      const { name } = entry
      if (isIgnored(name)) continue
      const path = `${inside}${name}`
      // A link can lead out of the folder, or back into it.
      if (entry.isSymbolicLink()) {
        if (!isModuleName(name) && !isFolder(join(folder, path))) continue
        throw unusableFile(
          `${join(given, path)} is a symbolic link, which is not followed: move the file into the folder, or let the ` +
            "name begin with _"
        )
      }
      if (entry.isDirectory()) visit(`${path}/`)
      else if (entry.isFile() && isModuleName(name)) {
        if (found.length >= maxModules) throw unusableFile(`The folder ${given} has more than ${maxModules} modules`)
        found.push(path)
      }
    }
  }
  visit("")
  return found.toSorted()
}

/** The name and the version in the nearest `package.json`. */
const packageOf = (folder: string): { readonly name: string; readonly version: string } => {
  const { version } = readManifest(folder) ?? {}
  return { name: projectName(folder), version: typeof version === "string" && version !== "" ? version : "0.0.0" }
}

/** Reads the folder at an absolute path; undefined if the path is that of a file. */
export const readFolder = (
  folder: string,
  { exportName, module: given }: { readonly module: string; readonly exportName: string | undefined }
): ModuleFolder | undefined => {
  if (!statSync(folder).isDirectory()) return undefined
  if (exportName !== undefined) {
    throw unusableFile(`--export cannot be used with a folder: all modules of ${given} are served`)
  }
  const paths = pathsOf(folder, given)
  if (paths.length === 0) {
    throw unusableFile(
      `The folder ${given} has no modules: files whose names end with .ts, .mts, .js or .mjs, except tests, declarations, ` +
        "and names that begin with . or _"
    )
  }
  return {
    ...packageOf(folder),
    modules: paths.map((path) => ({ file: join(folder, path), path: join(given, path) }))
  }
}
