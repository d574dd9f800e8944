/**
 * `npm run build`: creates the `dist` folder of each package from the compiler's output.
 *
 * The compiler writes to `.tsbuild`, beside `dist`, so that the paths in the source maps are valid in both. The build
 * puts modules that are always loaded together into one file. It marks each call at the top level of a module as pure,
 * so that a bundler drops the parts of the model, the errors and the services that a program does not use. Source maps
 * are preserved. `dist` is deleted first, so that no file of an earlier build is published.
 */
import { chmod, copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { basename, dirname, join, relative } from "node:path"
import { annotate } from "./annotate.ts"
import { buildBundled } from "./bundled.ts"
import { type File, group, type Groups, groups, type Package, read, readCompiled, reexports } from "./group.ts"

export const root: string = join(import.meta.dirname, "..")

/** The folders of the published packages, each after the packages that it imports. */
export const packages: ReadonlyArray<string> = [
  "protocol",
  "runtime",
  "server",
  "client",
  "auth",
  "testing",
  "sql",
  "tasks",
  "fleet",
  "console",
  "cli",
  "openapi",
  "gateway",
  "apps",
  "skills",
  "code-mode",
  "create-skein"
]
  .map(
    (name) => join(root, "packages", name)
  )

/** The folder of the package `skein`, which contains the code of the others. */
export const bundled: string = join(root, "packages/skein")

/**
 * The modules that every client or server program imports. The modules that they load are the core of each package,
 * also in the packages below. A package without these groups has a file for each module.
 */
const entryModules: Readonly<Record<string, ReadonlyArray<string>>> = {
  client: ["Client"],
  server: ["McpServer", "Tool"]
}

/** Reads the compiler's output for one module. */
const alone = async (folder: string, module: string): Promise<File> => ({
  path: `${module}.js`,
  ...await readCompiled(join(folder, ".tsbuild", `${module}.js`)),
  modules: [module]
})

const write = async (to: string, file: File): Promise<void> => {
  const { code, map } = await annotate(file.code, to, file.map)
  await mkdir(dirname(to), { recursive: true })
  // A file of re-exports contains no code from a source.
  const isMapped = file.modules.length > 0
  await writeFile(to, `${code}\n${isMapped ? `//# sourceMappingURL=${basename(to)}.map\n` : ""}`)
  if (isMapped) {
    await writeFile(`${to}.map`, JSON.stringify({ ...map, file: basename(to), sourcesContent: undefined }))
  }
  // A program: the shell reads the interpreter from its first line.
  if (code.startsWith("#!")) await chmod(to, 0o755)
}

/**
 * Replaces `.ts` in the imports of declarations, which the compiler leaves, by `.js`. Both have the same length, so
 * declaration maps stay valid.
 */
const published = (declarations: string): string =>
  declarations.replace(/(\b(?:from|import)\s*\(?\s*"\.[^"]*(?<!\.d))\.ts"/g, "$1.js\"")

/** Writes one package's `dist` from its `.tsbuild`. */
const build = async (
  pkg: Package,
  groups: Groups,
  below: ReadonlyMap<string, string>
): Promise<{ readonly modules: number; readonly files: ReadonlyArray<File> }> => {
  const { folder } = pkg
  const from = join(folder, ".tsbuild")
  const to = join(folder, "dist")
  await rm(to, { recursive: true, force: true })
  const sources = (await readdir(join(folder, "src"), { recursive: true })).filter((path) => path.endsWith(".ts"))
  const modules = sources.map((path) => path.replaceAll("\\", "/").slice(0, -".ts".length)).toSorted()
  const files = groups.base.size + groups.core.size > 0
    ? await group(pkg, groups, below)
    : await Promise.all(modules.map((module) => alone(folder, module)))
  for (const file of files) await write(join(to, file.path), file)
  for (const module of modules) {
    await mkdir(dirname(join(to, module)), { recursive: true })
    await writeFile(join(to, `${module}.d.ts`), published(await readFile(join(from, `${module}.d.ts`), "utf8")))
    await copyFile(join(from, `${module}.d.ts.map`), join(to, `${module}.d.ts.map`))
  }
  await copyFile(join(root, "LICENSE"), join(folder, "LICENSE"))
  return { modules: modules.length, files }
}

/** Writes the `dist` of each package. `packages` must be in the order of their imports, the lowest first. */
export const buildAll = async (packages: ReadonlyArray<Package>): Promise<void> => {
  const found = groups(packages, entryModules)
  const below = new Map<string, string>()
  for (const pkg of packages) {
    const { files, modules } = await build(pkg, found.get(basename(pkg.folder))!, below)
    for (const [specifier, code] of reexports(pkg.folder, files)) below.set(specifier, code)
    console.log(`${relative(root, pkg.folder)}/dist  ${modules} modules in ${files.length} files`)
  }
}

if (import.meta.main) {
  await buildAll(await Promise.all(packages.map(read)))
  await buildBundled(bundled)
}
