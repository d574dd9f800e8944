/** Files of the folders that the client shares as roots, over stdio. */
import { AsyncServer, type HandlerContext, VisibleError } from "skein"
import { lstat, readdir, readFile, realpath, writeFile } from "node:fs/promises"
import { basename, dirname, join, relative, resolve, sep } from "node:path"
import { fileURLToPath } from "node:url"
import { z } from "zod"

const shared = async (context: HandlerContext) =>
  Promise.all((await context.roots()).map(({ uri }) => realpath(fileURLToPath(uri))))

/** Finds a path in a shared folder. Symbolic links are refused, since they may lead out of it. */
const find = async (path: string, context: HandlerContext, mayBeNew = false) => {
  const roots = await shared(context)
  const full = resolve(roots[0] ?? "/", path)
  const real = join(await realpath(dirname(full)).catch(() => dirname(full)), basename(full))
  const stats = await lstat(real).catch(() => undefined)
  const isShared = !stats?.isSymbolicLink() && roots.some((root) => real === root || real.startsWith(join(root, sep)))
  if (!isShared) throw new VisibleError(`${path} is not in a shared folder: ${roots.join(", ") || "none is shared"}`)
  if (stats === undefined && !mayBeNew) throw new VisibleError(`${path} does not exist: call list_files`)
  return real
}

const annotations = { readOnlyHint: true }

new AsyncServer({ name: "files", version: "1.0.0" })
  .tool(
    "list_files",
    { description: "Lists a folder.", input: z.object({ folder: z.string().default(".") }), annotations },
    async ({ folder }, context) => {
      const entries = await readdir(await find(folder, context), { withFileTypes: true })
      return entries.map((entry) => entry.name + (entry.isDirectory() ? "/" : "")).join("\n")
    }
  )
  .tool(
    "read_file",
    { description: "Returns the text of a file.", input: z.object({ path: z.string() }), annotations },
    async ({ path }, context) => readFile(await find(path, context), "utf8")
  )
  .tool(
    "write_file",
    { description: "Writes the text of a file.", input: z.object({ path: z.string(), text: z.string() }) },
    async ({ path, text }, context) => {
      await writeFile(await find(path, context, true), text)
      return `Wrote ${text.length} characters to ${path}`
    }
  )
  .tool(
    "search",
    { description: "Finds 100 lines with a text in all files.", input: z.object({ text: z.string() }), annotations },
    async ({ text }, context) => {
      const found: Array<string> = []
      for (const root of await shared(context)) {
        for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
          const path = join(entry.parentPath, entry.name)
          const lines = entry.isFile() ? (await readFile(path, "utf8")).split("\n") : []
          for (const [index, line] of lines.entries()) {
            if (line.includes(text)) found.push(`${relative(root, path)}:${index + 1}: ${line}`)
            if (found.length === 100) return found.join("\n")
          }
        }
      }
      return found.join("\n")
    }
  )
  .runStdio()
