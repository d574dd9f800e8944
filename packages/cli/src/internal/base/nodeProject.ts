/**
 * The project of a file: the folder and the contents of its `package.json`.
 */
import { existsSync, readFileSync, statSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { failed } from "./process.ts"

/** Whether a path is that of an existing folder. */
export const isFolder = (path: string): boolean => {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

/** The folder of the nearest `package.json` of a file or a folder, or the folder itself. */
export const projectFolder = (path: string): string => {
  const folder = isFolder(path) ? resolve(path) : dirname(resolve(path))
  let at = folder
  while (!existsSync(join(at, "package.json"))) {
    const parent = dirname(at)
    if (parent === at) return folder
    at = parent
  }
  return at
}

/** The nearest `package.json` of a file or a folder; undefined if there is none. Throws if it cannot be read. */
export const readManifest = (path: string): Readonly<Record<string, unknown>> | undefined => {
  const file = join(projectFolder(path), "package.json")
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return undefined
  try {
    const manifest: unknown = JSON.parse(readFileSync(file, "utf8"))
    return typeof manifest === "object" && manifest !== null ? manifest as Readonly<Record<string, unknown>> : {}
  } catch (error) {
    throw failed(2, `${file} cannot be read: ${error instanceof Error ? error.message : error}`)
  }
}

/** The name in the nearest `package.json`, or the name of its folder. */
export const projectName = (path: string): string => {
  const { name } = readManifest(path) ?? {}
  return typeof name === "string" && name !== "" ? name : basename(projectFolder(path))
}
