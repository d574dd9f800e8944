/**
 * Watches the files of a project. Each folder has a watcher: a recursive watcher of Node would watch
 * `node_modules` too, which can have 100,000 folders.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { existsSync, type FSWatcher, readdirSync, watch } from "node:fs"
import { basename, dirname, extname, join, relative, resolve, sep } from "node:path"
import { isFolder } from "../base/nodeProject.ts"

/** The extensions that count, unless the command line names a file. Data files are often written by the server. */
export const extensions: ReadonlyArray<string> = "ts mts cts tsx js mjs cjs jsx py rb php go rs java kt cs ex exs"
  .split(" ")

const ignored = new Set(["node_modules", "dist", "build", "out", "target", "coverage", "__pycache__", "venv"])

/** The files to watch, and the receiver of changes. */
export interface WatchOptions {
  /** Files and folders. */
  readonly paths: ReadonlyArray<string>
  /** The number of folders. The folders beyond are not watched, and `warn` is called. */
  readonly maxFolders: number
  readonly onChange: (path: string) => void
  readonly warn: (line: string) => void
}

/** Whether a folder of this name is not watched, unless the command line names it. */
export const isIgnoredFolder = (name: string): boolean => name.startsWith(".") || ignored.has(name)

/** Watches until the scope closes. */
export const watchFiles = (
  { maxFolders, onChange, paths, warn }: WatchOptions
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(Effect.acquireRelease(
    Effect.sync(() => {
      const watchers = new Map<string, FSWatcher>()
      let isClosed = false
      let hasWarned = false
      const changed = (path: string): void => onChange(relative(process.cwd(), path))
      /** Closes the watchers of a folder that was removed or moved. A new folder at its path needs its own. */
      const remove = (folder: string): boolean => {
        if (!watchers.has(folder)) return false
        for (const [path, watcher] of watchers) {
          if (path !== folder && !path.startsWith(folder + sep)) continue
          watcher.close()
          watchers.delete(path)
        }
        return true
      }
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
          const watcher = watch(folder, (event, name) => {
            if (name === null) return onChange(folder)
            const path = join(folder, name)
            const isGone = isDeep && event === "rename" && remove(path)
            if (isDeep && !isIgnoredFolder(name) && isFolder(path)) return visit(path, true)
            if (isGone || accept(name)) changed(path)
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
      const isSource = (name: string): boolean => extensions.includes(extname(name).slice(1))
      // A folder that is new is reported if it has files: they can be older than its watcher.
      const visit = (folder: string, isNew: boolean): void => {
        if (watchers.has(folder)) return
        add(folder, isSource, true)
        if (watchers.size >= maxFolders) return
        try {
          for (const entry of readdirSync(folder, { withFileTypes: true })) {
            const path = join(folder, entry.name)
            if (entry.isDirectory() && !isIgnoredFolder(entry.name)) visit(path, isNew)
            else if (isNew && isSource(entry.name)) changed(path)
          }
        } catch {
          // The folder is gone.
        }
      }
      // Several files of one folder share its watcher.
      const files = new Map<string, Set<string>>()
      for (const path of paths.map((path) => resolve(path))) {
        if (isFolder(path)) visit(path, false)
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
