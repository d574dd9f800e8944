/** Files of the folders that the client shares as roots, over stdio. */
import { inputRequired, inputResponse, McpServer, type ServerContext } from "@modelcontextprotocol/server"
import { serveStdio } from "@modelcontextprotocol/server/stdio"
import { lstat, readdir, readFile, realpath, writeFile } from "node:fs/promises"
import { basename, dirname, join, relative, resolve, sep } from "node:path"
import { fileURLToPath } from "node:url"
import { z } from "zod"

const text = (text: string) => ({ content: [{ type: "text" as const, text }] })

/** Asks the client for its roots, and runs again with them. */
const withRoots = async (
  { mcpReq }: ServerContext,
  run: (roots: ReadonlyArray<string>) => Promise<string>
) => {
  const answer = inputResponse(mcpReq.inputResponses, "roots")
  if (answer.kind !== "roots") return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } })
  return text(await run(await Promise.all(answer.roots.map(({ uri }) => realpath(fileURLToPath(uri))))))
}

/** Finds a path in a shared folder. Symbolic links are refused, since they may lead out of it. */
const find = async (path: string, roots: ReadonlyArray<string>, mayBeNew = false) => {
  const full = resolve(roots[0] ?? "/", path)
  const real = join(await realpath(dirname(full)).catch(() => dirname(full)), basename(full))
  const stats = await lstat(real).catch(() => undefined)
  const isShared = !stats?.isSymbolicLink() && roots.some((root) => real === root || real.startsWith(join(root, sep)))
  if (!isShared) throw new Error(`${path} is not in a shared folder: ${roots.join(", ") || "none is shared"}`)
  if (stats === undefined && !mayBeNew) throw new Error(`${path} does not exist: call list_files`)
  return real
}

serveStdio(() => {
  const server = new McpServer({ name: "files", version: "1.0.0" })
  server.registerTool(
    "list_files",
    {
      description: "Lists a folder.",
      inputSchema: z.object({ folder: z.string().default(".") }),
      annotations: { readOnlyHint: true }
    },
    ({ folder }, context) =>
      withRoots(context, async (roots) => {
        const entries = await readdir(await find(folder, roots), { withFileTypes: true })
        return entries.map((entry) => entry.name + (entry.isDirectory() ? "/" : "")).join("\n")
      })
  )
  server.registerTool(
    "read_file",
    {
      description: "Returns the text of a file.",
      inputSchema: z.object({ path: z.string() }),
      annotations: { readOnlyHint: true }
    },
    ({ path }, context) => withRoots(context, async (roots) => readFile(await find(path, roots), "utf8"))
  )
  server.registerTool(
    "write_file",
    {
      description: "Writes the text of a file.",
      inputSchema: z.object({ path: z.string(), text: z.string() })
    },
    ({ path, text }, context) =>
      withRoots(context, async (roots) => {
        await writeFile(await find(path, roots, true), text)
        return `Wrote ${text.length} characters to ${path}`
      })
  )
  server.registerTool(
    "search",
    {
      description: "Finds 100 lines with a text in all files.",
      inputSchema: z.object({ text: z.string() }),
      annotations: { readOnlyHint: true }
    },
    ({ text }, context) =>
      withRoots(context, async (roots) => {
        const found: Array<string> = []
        for (const root of roots) {
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
      })
  )
  return server
})
