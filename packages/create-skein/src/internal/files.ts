/**
 * The files of a created project. Each template is a folder of real files, which this repository checks and tests.
 */
import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { packageJson, type Project, withInstallation, withPackageManager } from "./packageJson.ts"

/** This package: `src/internal` and `dist/internal` are equally deep in it. */
const root = fileURLToPath(new URL("../..", import.meta.url))

/** The name of a server in the templates. */
const placeholder = "skein-template"

/** The name of its package in the templates. */
const packagePlaceholder = "@skein/template"

/** The server of `http` is that of `stdio`. A later folder replaces files of an earlier one. */
const layers = ({ style, template }: Project): ReadonlyArray<string> => [
  "common",
  `${template}/shared`,
  ...template === "http" ? [`stdio/${style}`] : [],
  `${template}/${style}`
]

/** `_gitignore` is `.gitignore`: npm does not publish files with that name. */
const published = (path: string): string => path.replace(/(^|\/)_(?=[^/]+$)/, "$1.")

/** The version of this package. */
export const readVersion = async (): Promise<string> =>
  (JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { readonly version: string }).version

/** The name without its scope, which a server has in configurations and images. */
const shortName = (name: string): string => name.slice(name.lastIndexOf("/") + 1)

/** Returns the files of a project: their texts by their paths, which have `/`. */
export const filesOf = async (project: Project): Promise<ReadonlyMap<string, string>> => {
  const files = new Map([["package.json", packageJson(project, await readVersion())]])
  for (const layer of layers(project)) {
    const folder = join(root, "templates", layer)
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const from = join(entry.parentPath, entry.name)
      const path = published(from.slice(folder.length + 1).replaceAll("\\", "/"))
      const text = (await readFile(from, "utf8"))
        .replaceAll(placeholder, shortName(project.name))
        .replaceAll(packagePlaceholder, project.name)
      const replace = path === "Dockerfile"
        ? withInstallation
        : path === "README.md" || path.endsWith(".ts")
        ? withPackageManager
        : undefined
      files.set(path, replace?.(text, project.packageManager) ?? text)
    }
  }
  return files
}
