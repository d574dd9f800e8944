/**
 * Watches the files of a project. Each folder is watched by itself: a recursive watcher of Node would watch
 * `node_modules` too, which can have 100,000 folders.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { existsSync, type FSWatcher, readdirSync, statSync, watch } from "node:fs"
import { basename, dirname, extname, join, relative, resolve } from "node:path"

/** The extensions that count, unless the command line names a file. Data files are often written by the server. */
export const extensions: ReadonlyArray<string> = "ts mts cts tsx js mjs cjs jsx py rb php go rs java kt cs ex exs"
  .split(" ")

const ignored = new Set(["node_modules", "dist", "build", "out", "target", "coverage", "__pycache__", "venv"])

/** The number of folders that are watched by default. */
export const defaultMaxFolders = 1_000

/** What to watch. */
export interface WatchOptions {
  /** Files and folders. */
  readonly paths: ReadonlyArray<string>
  /** The number of folders: 1,000 by default. The folders beyond are not watched, and `warn` is called. */
  readonly maxFolders: number
  readonly onChange: (path: string) => void
  readonly warn: (line: string) => void
}

const isFolder = (path: string): boolean => {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

/** Watches until the scope closes. */
export const watchFiles = (
  { maxFolders, onChange, paths, warn }: WatchOptions
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(Effect.acquireRelease(
    Effect.sync(() => {
      const watchers = new Map<string, FSWatcher>()
      let isClosed = false
      let hasWarned = false
      const add = (folder: string, accept: (name: string) => boolean, isDeep: boolean): void => {
        if (isClosed || watchers.has(folder)) return
        if (watchers.size >= maxFolders) {
          if (!hasWarned) {
            warn(`More than ${maxFolders} folders: ${folder} and further ones are not watched (--max-folders)`)
          }
          hasWarned = true
          return
        }
        try {
          const watcher = watch(folder, (_, name) => {
            if (name === null) return onChange(folder)
            const path = join(folder, name)
            if (isDeep && !isIgnored(name) && isFolder(path)) return visit(path)
            if (accept(name)) onChange(relative(process.cwd(), path))
          })
          // The folder is gone.
          watcher.on("error", () => {
            watcher.close()
            watchers.delete(folder)
          })
          watchers.set(folder, watcher)
        } catch (error) {
          warn(`The folder ${folder} cannot be watched: ${error instanceof Error ? error.message : error}`)
        }
      }
      const isIgnored = (name: string): boolean => name.startsWith(".") || ignored.has(name)
      const isSource = (name: string): boolean => extensions.includes(extname(name).slice(1))
      const visit = (folder: string): void => {
        add(folder, isSource, true)
        if (watchers.size >= maxFolders) return
        try {
          for (const entry of readdirSync(folder, { withFileTypes: true })) {
            if (entry.isDirectory() && !isIgnored(entry.name)) visit(join(folder, entry.name))
          }
        } catch {
          // The folder is gone.
        }
      }
      // Several files of one folder share its watcher.
      const files = new Map<string, Set<string>>()
      for (const path of paths.map((path) => resolve(path))) {
        if (isFolder(path)) visit(path)
        else if (existsSync(path)) {
          const named = files.get(dirname(path)) ?? new Set()
          files.set(dirname(path), named.add(basename(path)))
        } else warn(`${path} does not exist, and is not watched`)
      }
      for (const [folder, named] of files) {
        watchers.get(folder)?.close()
        watchers.delete(folder)
        const isDeep = paths.some((path) => isFolder(path) && !relative(resolve(path), folder).startsWith(".."))
        add(folder, (name) => named.has(name) || (isDeep && isSource(name)), isDeep)
      }
      return () => {
        isClosed = true
        for (const watcher of watchers.values()) watcher.close()
      }
    }),
    (close) => Effect.sync(close)
  ))

/** The folder of the nearest `package.json` of a file, or the folder of the file. */
export const projectFolder = (file: string): string => {
  const folder = dirname(resolve(file))
  let at = folder
  while (!existsSync(join(at, "package.json"))) {
    const parent = dirname(at)
    if (parent === at) return folder
    at = parent
  }
  return at
}
