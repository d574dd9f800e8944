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
import { exceeded } from "./skillFiles.ts"

/** The most levels of folders below the folder. */
const maxDepth = 16

/** The most files and folders in the folder. */
const maxTotalFiles = 10_000

/** The bounds of a folder, and which of its files are served. */
export interface FolderSettings {
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

/** A part of a folder that is not served, and why. */
export interface LeftOut {
  /** The path of the skill, or of the symbolic link, within the folder. */
  readonly path: string
  readonly error: SkillError
}

/** The files of a folder, as a walk found them. */
export interface FolderState {
  readonly name: string
  readonly files: ReadonlyArray<FoundFile>
  /** The symbolic links that lead out of the folder, to a folder that contains them, or nowhere. */
  readonly leftOut: ReadonlyArray<LeftOut>
  readonly fingerprint: string
}

/** The skills of a folder, and those that cannot be read. */
export interface FolderContent {
  readonly skills: ReadonlyArray<FoundSkill>
  readonly leftOut: ReadonlyArray<LeftOut>
}

/** A skill as it is in a folder. */
export interface FoundSkill {
  /** The beginning of the paths of its files: `acme/refunds/`, or `""` for the folder itself. */
  readonly root: string
  /** Its path within the folder, or the name of the folder itself. */
  readonly path: string
  /** The files by their paths below `root`. */
  readonly files: ReadonlyMap<string, Uint8Array>
}

const codeOf = (cause: unknown): string =>
  (cause as { readonly code?: string } | null)?.code ?? (cause instanceof Error ? cause.message : String(cause))

const unreadable = (path: string) => (cause: unknown): SkillError =>
  cause instanceof SkillError ? cause : new SkillError({
    reason: new FolderUnreadable({ message: `Cannot read ${quote(path, 1024)}: ${codeOf(cause)}`, path, cause })
  })

const isInside = (path: string, root: string): boolean =>
  path === root || path.startsWith(root.endsWith(sep) ? root : root + sep)

/** The real path of a file; `undefined` for a symbolic link that leads nowhere, or in a circle. */
const targetOf = (path: string): Promise<string | undefined> =>
  realpath(path).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ELOOP") return undefined
    throw error
  })

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
      const leftOut: Array<LeftOut> = []
      const marks: Array<string> = []
      const leave = (path: string, reason: SkillError["reason"]): void => {
        leftOut.push({ path, error: new SkillError({ reason }) })
        marks.push(JSON.stringify([path, reason._tag]))
      }
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
          const target = await targetOf(join(at, name))
          if (target === undefined) {
            const message = `The symbolic link ${quote(inner)} leads to no file`
            leave(inner, new FolderUnreadable({ message, path: inner }))
            continue
          }
          if (!isInside(target, root)) {
            const message = `The symbolic link ${quote(inner)} leads out of the folder of skills`
            leave(inner, new OutsideFolder({ message, path: inner }))
            continue
          }
          if (target.slice(root.length).split(sep).some((segment) => segment.startsWith("."))) continue
          const found = await stat(target)
          if (found.isDirectory()) {
            if (target === at || above.has(target)) {
              const message = `The symbolic link ${quote(inner)} leads to a folder that contains it`
              leave(inner, new FolderUnreadable({ message, path: inner }))
              continue
            }
            await enter(target, inner, new Set([...above, at]))
          } else if (found.isFile()) {
            files.push({ path: inner, at: target, size: found.size })
            marks.push(JSON.stringify([inner, target, found.size, found.mtimeMs, found.ctimeMs, found.ino]))
          }
        }
      }
      await enter(root, "", new Set())
      return { name: basename(root), files, leftOut, fingerprint: marks.join("\n") }
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

/** The folders of skills among the files of a folder, as beginnings of paths: `acme/refunds/`, and `""` for the folder. */
const rootsOf = ({ files }: FolderState): ReadonlyArray<string> => {
  const ending = `/${SkillMessage.fileName}`
  return files.flatMap(({ path }) =>
    path === SkillMessage.fileName ? [""] : path.endsWith(ending) ? [path.slice(0, -SkillMessage.fileName.length)] : []
  )
}

/**
 * Reads the skills among the files of a folder: each folder with a `SKILL.md`, the folder itself included. A skill with a file
 * that cannot be read is left out.
 */
export const read = (
  folder: string,
  state: FolderState,
  { maxTotalBytes }: Pick<FolderSettings, "maxTotalBytes">
): Effect.Effect<FolderContent, SkillError> => {
  const roots = rootsOf(state)
  return Effect.tryPromise({
    try: async (signal) => {
      const contents = new Map<string, Uint8Array>()
      const unread: Array<readonly [path: string, error: SkillError]> = []
      let total = 0
      for (const file of state.files) {
        signal.throwIfAborted()
        if (!roots.some((root) => file.path.startsWith(root))) continue
        try {
          const bytes = await readFile(file, maxTotalBytes)
          total += bytes.length
          contents.set(file.path, bytes)
        } catch (error) {
          if (error instanceof SkillError) throw error
          unread.push([file.path, unreadable(file.path)(error)])
        }
        if (total > maxTotalBytes) {
          throw exceeded("maxTotalBytes", `The skills have more than maxTotalBytes (${maxTotalBytes}) bytes`)
        }
      }
      const skills: Array<FoundSkill> = []
      const leftOut: Array<LeftOut> = [...state.leftOut]
      for (const root of roots) {
        const path = root === "" ? state.name : root.slice(0, -1)
        const [, error] = unread.find(([path]) => path.startsWith(root)) ?? []
        if (error === undefined) skills.push({ root, path, files: filesIn(contents, root) })
        else leftOut.push({ path, error })
      }
      return { skills, leftOut }
    },
    catch: unreadable(folder)
  })
}

/** The files in a folder, by their paths within it. */
const filesIn = (contents: ReadonlyMap<string, Uint8Array>, root: string): ReadonlyMap<string, Uint8Array> =>
  new Map([...contents].flatMap(([path, bytes]) => path.startsWith(root) ? [[path.slice(root.length), bytes]] : []))
