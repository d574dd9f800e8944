/**
 * `npm run build`: from what the compiler wrote to `dist`, in each package.
 *
 * The compiler writes to `.tsbuild`, beside `dist` so that the paths in the maps hold in both. Here each call at the top of a
 * module is marked as pure, so that a bundler drops the parts of the model, the errors and the services that a program does not
 * use; the map is carried through. `dist` is written anew each time: nothing stale is ever published.
 */
import { chmod, copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { annotate, type SourceMap } from "./annotate.ts"

export const root: string = join(import.meta.dirname, "..")

/** The folders of the packages that are published, the lowest room first. */
export const packages: ReadonlyArray<string> = ["protocol", "runtime", "server", "client", "testing"].map((room) =>
  join(root, "packages", room)
)

const write = async (from: string, to: string): Promise<void> => {
  const { code, map } = await annotate(
    (await readFile(from, "utf8")).replace(/\n\/\/# sourceMappingURL=.*\s*$/, ""),
    from,
    JSON.parse(await readFile(`${from}.map`, "utf8")) as SourceMap
  )
  await writeFile(to, `${code}\n//# sourceMappingURL=${basename(to)}.map\n`)
  // A program, which the shell starts by its first line.
  if (code.startsWith("#!")) await chmod(to, 0o755)
  await writeFile(`${to}.map`, JSON.stringify({ ...map, file: basename(to), sourcesContent: undefined }))
}

/** The compiler leaves `.ts` in the imports of declarations. As long as `.js`, so that the declaration maps hold. */
const published = (declarations: string): string =>
  declarations.replace(/(\b(?:from|import)\s*\(?\s*"\.[^"]*(?<!\.d))\.ts"/g, "$1.js\"")

/** Writes one package's `dist` from its `.tsbuild`. */
export const build = async (folder: string): Promise<number> => {
  const from = join(folder, ".tsbuild")
  const to = join(folder, "dist")
  await rm(to, { recursive: true, force: true })
  const sources = new Set(await readdir(join(folder, "src"), { recursive: true }))
  let modules = 0
  for (const path of await readdir(from, { recursive: true })) {
    const module = /^(.*)(\.js|\.d\.ts|\.d\.ts\.map)$/.exec(path)
    // What the compiler wrote for a source that is gone stays in its folder: leave it there.
    if (module === null || !sources.has(`${module[1]}.ts`)) continue
    await mkdir(dirname(join(to, path)), { recursive: true })
    if (module[2] === ".js") {
      await write(join(from, path), join(to, path))
      modules++
    } else if (module[2] === ".d.ts") {
      await writeFile(join(to, path), published(await readFile(join(from, path), "utf8")))
    } else await copyFile(join(from, path), join(to, path))
  }
  await copyFile(join(root, "LICENSE"), join(folder, "LICENSE"))
  return modules
}

if (import.meta.main) {
  for (const folder of packages) console.log(`${folder.slice(root.length + 1)}/dist  ${await build(folder)} modules`)
}
