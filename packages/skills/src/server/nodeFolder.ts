/**
 * Reads the skills in a folder of the file system, on Node.
 *
 * A walk finds all files without reading them. Its fingerprint differs if a file was added, removed or written since, so
 * that a folder is read again only if it has changed. A file is read through its real path, which a symbolic link cannot
 * lead out of the folder.
 */
import * as SkillMessage from "../shared/SkillMessage.ts"
import { quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import { constants } from "node:fs"
import { type FileHandle, open, readdir, realpath, stat } from "node:fs/promises"
import { basename, join, sep } from "node:path"
import { FolderUnreadable, OutsideFolder, SkillError } from "./SkillError.ts"
import { exceeded, type SkillContent } from "./skillFiles.ts"

/** The most levels of folders below the folder. */
const maxDepth = 16

/** The most files and folders in the folder. */
const maxTotalFiles = 10_000

/** The bounds of a folder, and which of its files are served. */
export interface FolderSettings {
  readonly prefix: string | undefined
  readonly include: (path: string) => boolean
  readonly maxTotalBytes: number
}

interface FoundFile {
  /** The path within the folder, with slashes. */
  readonly path: string
  /** The real path on disk. */
  readonly at: string
  readonly size: number
}

/** The files of a folder, as a walk found them. */
export interface FolderState {
  readonly name: string
  readonly files: ReadonlyArray<FoundFile>
  readonly fingerprint: string
}

const codeOf = (cause: unknown): string =>
  (cause as { readonly code?: string } | null)?.code ?? (cause instanceof Error ? cause.message : String(cause))

const unreadable = (path: string) => (cause: unknown): SkillError =>
  cause instanceof SkillError ? cause : new SkillError({
    reason: new FolderUnreadable({ message: `Cannot read ${quote(path, 1024)}: ${codeOf(cause)}`, path, cause })
  })

const isInside = (path: string, root: string): boolean =>
  path === root || path.startsWith(root.endsWith(sep) ? root : root + sep)

/** Finds the files in a folder. Names that begin with a dot are left out. */
export const walk = (
  folder: string,
  { include }: Pick<FolderSettings, "include">,
  maxFiles = maxTotalFiles
): Effect.Effect<FolderState, SkillError> =>
  Effect.tryPromise({
    try: async (signal) => {
      const root = await realpath(folder)
      const files: Array<FoundFile> = []
      const marks: Array<string> = []
      let count = 0
      const enter = async (at: string, path: string, above: ReadonlySet<string>): Promise<void> => {
        const depth = above.size
        if (depth > maxDepth) {
          throw exceeded("depth", `The folder ${quote(path)} is more than ${maxDepth} levels deep`)
        }
        for (const name of (await readdir(at)).sort()) {
          signal.throwIfAborted()
          const inner = path === "" ? name : `${path}/${name}`
          if (name.startsWith(".") || !include(inner)) continue
          if (++count > maxFiles) {
            throw exceeded("totalFiles", `The folder has more than ${maxFiles} files and folders`)
          }
          // Of a symbolic link, the real path must be in the folder too.
          const target = await realpath(join(at, name))
          if (!isInside(target, root)) {
            const message = `The symbolic link ${quote(inner)} leads out of the folder of skills`
            throw new SkillError({ reason: new OutsideFolder({ message, path: inner }) })
          }
          if (target.slice(root.length).split(sep).some((segment) => segment.startsWith("."))) continue
          const found = await stat(target)
          if (found.isDirectory()) {
            if (target === at || above.has(target)) {
              const message = `The symbolic link ${quote(inner)} leads to a folder that contains it`
              throw new SkillError({ reason: new FolderUnreadable({ message, path: inner }) })
            }
            await enter(target, inner, new Set([...above, at]))
          } else if (found.isFile()) {
            files.push({ path: inner, at: target, size: found.size })
            marks.push(JSON.stringify([inner, target, found.size, found.mtimeMs, found.ctimeMs, found.ino]))
          }
        }
      }
      await enter(root, "", new Set())
      return { name: basename(root), files, fingerprint: marks.join("\n") }
    },
    catch: unreadable(folder)
  })

/** Reads a file that has at most `maxBytes` bytes, also if it grows meanwhile. */
const readFile = async ({ at, path, size }: FoundFile, maxBytes: number): Promise<Uint8Array> => {
  const tooLarge = () => exceeded("maxTotalBytes", `The file ${quote(path)} exceeds maxTotalBytes`)
  if (size > maxBytes) throw tooLarge()
  let file: FileHandle | undefined
  try {
    // The path is real: a link at its end has appeared since.
    file = await open(at, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0))
    const now = await file.stat()
    if (!now.isFile() || now.size > maxBytes) throw tooLarge()
    const bytes = new Uint8Array(now.size)
    let length = 0
    while (length < bytes.length) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length)
      if (bytesRead === 0) break
      length += bytesRead
    }
    return bytes.subarray(0, length)
  } finally {
    await file?.close()
  }
}

/** Reads the skills among the files of a folder: each folder with a `SKILL.md`, the folder itself included. */
export const read = (
  folder: string,
  state: FolderState,
  settings: FolderSettings
): Effect.Effect<ReadonlyArray<SkillContent>, SkillError> => {
  const { maxTotalBytes, prefix } = settings
  const ending = `/${SkillMessage.fileName}`
  const roots = state.files.flatMap(({ path }) =>
    path === SkillMessage.fileName ? [""] : path.endsWith(ending) ? [path.slice(0, -SkillMessage.fileName.length)] : []
  )
  return Effect.tryPromise({
    try: async (signal) => {
      const contents = new Map<string, Uint8Array>()
      let total = 0
      for (const file of state.files) {
        signal.throwIfAborted()
        if (!roots.some((root) => file.path.startsWith(root))) continue
        const bytes = await readFile(file, maxTotalBytes)
        total += bytes.length
        if (total > maxTotalBytes) {
          throw exceeded("maxTotalBytes", `The skills have more than maxTotalBytes (${maxTotalBytes}) bytes`)
        }
        contents.set(file.path, bytes)
      }
      return roots.map((root): SkillContent => {
        const inside = root === "" ? state.name : root.slice(0, -1)
        return {
          path: prefix === undefined ? inside : `${prefix}/${inside}`,
          files: new Map(
            [...contents].flatMap(([path, bytes]) => path.startsWith(root) ? [[path.slice(root.length), bytes]] : [])
          )
        }
      })
    },
    catch: unreadable(folder)
  })
}
