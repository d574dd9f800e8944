/**
 * `npm run build`: from what the compiler wrote to `dist`, in each package.
 *
 * The compiler writes to `.tsbuild`, beside `dist` so that the paths in the maps hold in both. Here what is always loaded together
 * is put into one file, and each call at the top of a module is marked as pure, so that a bundler drops the parts of the model, the
 * errors and the services that a program does not use; the maps are carried through. `dist` is written anew each time: nothing
 * stale is ever published.
 */
import { chmod, copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { basename, dirname, join, relative } from "node:path"
import { annotate, type SourceMap } from "./annotate.ts"
import { cores, type File, group, read, type Room, schematic } from "./group.ts"

export const root: string = join(import.meta.dirname, "..")

/** The folders of the packages that are published, the lowest room first. */
export const packages: ReadonlyArray<string> = [
  "protocol",
  "runtime",
  "server",
  "client",
  "cli",
  "testing",
  "sql",
  "tasks"
]
  .map(
    (room) => join(root, "packages", room)
  )

/**
 * Where programs start: a client or a server is not made without these. What they load, in the packages below too, is the core of
 * each package. A package without a core keeps a file for each module.
 */
export const heads: Readonly<Record<string, ReadonlyArray<string>>> = { client: ["Client"], server: ["McpServer"] }

/** One module as the compiler wrote it. */
const alone = async (folder: string, module: string): Promise<File> => {
  const from = join(folder, ".tsbuild", `${module}.js`)
  return {
    path: `${module}.js`,
    code: (await readFile(from, "utf8")).replace(/\n\/\/# sourceMappingURL=.*\s*$/, ""),
    map: JSON.parse(await readFile(`${from}.map`, "utf8")) as SourceMap,
    modules: [module]
  }
}

const write = async (to: string, file: File): Promise<void> => {
  const { code, map } = await annotate(file.code, to, file.map)
  await mkdir(dirname(to), { recursive: true })
  // A file that only passes on has nothing that a map could lead to.
  const isMapped = file.modules.length > 0
  await writeFile(to, `${code}\n${isMapped ? `//# sourceMappingURL=${basename(to)}.map\n` : ""}`)
  if (isMapped) {
    await writeFile(`${to}.map`, JSON.stringify({ ...map, file: basename(to), sourcesContent: undefined }))
  }
  // A program, which the shell starts by its first line.
  if (code.startsWith("#!")) await chmod(to, 0o755)
}

/** The compiler leaves `.ts` in the imports of declarations. As long as `.js`, so that the declaration maps hold. */
const published = (declarations: string): string =>
  declarations.replace(/(\b(?:from|import)\s*\(?\s*"\.[^"]*(?<!\.d))\.ts"/g, "$1.js\"")

/** Writes one package's `dist` from its `.tsbuild`. */
export const build = async (
  room: Room,
  core: ReadonlySet<string>,
  schemas: ReadonlySet<string>
): Promise<{ readonly modules: number; readonly files: number }> => {
  const { folder } = room
  const from = join(folder, ".tsbuild")
  const to = join(folder, "dist")
  await rm(to, { recursive: true, force: true })
  const sources = (await readdir(join(folder, "src"), { recursive: true })).filter((path) => path.endsWith(".ts"))
  const modules = sources.map((path) => path.replaceAll("\\", "/").slice(0, -".ts".length)).toSorted()
  const files = core.size > 0
    ? [...await group(room, core, schemas), await alone(folder, "index")]
    : await Promise.all(modules.map((module) => alone(folder, module)))
  for (const file of files) await write(join(to, file.path), file)
  for (const module of modules) {
    await mkdir(dirname(join(to, module)), { recursive: true })
    await writeFile(join(to, `${module}.d.ts`), published(await readFile(join(from, `${module}.d.ts`), "utf8")))
    await copyFile(join(from, `${module}.d.ts.map`), join(to, `${module}.d.ts.map`))
  }
  await copyFile(join(root, "LICENSE"), join(folder, "LICENSE"))
  return { modules: modules.length, files: files.length }
}

if (import.meta.main) {
  const rooms = await Promise.all(packages.map(read))
  const found = cores(rooms, heads)
  const schemas = schematic(rooms)
  for (const room of rooms) {
    const name = basename(room.folder)
    const { files, modules } = await build(room, found.get(name) ?? new Set(), schemas.get(name) ?? new Set())
    console.log(`${relative(root, room.folder)}/dist  ${modules} modules in ${files} files`)
  }
}
