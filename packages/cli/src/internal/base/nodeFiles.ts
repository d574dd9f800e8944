/**
 * Files that commands read and write.
 */
import * as PrintableError from "@skein/protocol/PrintableError"
import * as Effect from "effect/Effect"
import { closeSync, constants, existsSync, openSync, readSync, statSync } from "node:fs"
import { chmod, mkdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises"
import { homedir } from "node:os"
import { delimiter, dirname, join, resolve } from "node:path"

/** The computer and the project that a server is installed for. */
export interface Place {
  /** As in `process.platform`. */
  readonly platform: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** The folder of the user. */
  readonly home: string
  /** The folder of the project. */
  readonly folder: string
}

/** A file could not be read or written. `problem` is the code of the system, `ENOENT` for example. */
export class FileFailed extends PrintableError.tagged("FileFailed")<{ readonly problem: string }> {}

const attempt = <A>(run: () => Promise<A>, failure: string): Effect.Effect<A, FileFailed> =>
  Effect.tryPromise({
    try: run,
    catch: (cause) => {
      const problem = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)
      return new FileFailed({ problem, message: `${failure}: ${problem}` })
    }
  })

/** The text of a file. */
export const readText = (file: string): Effect.Effect<string, FileFailed> =>
  attempt(() => readFile(file, "utf8"), `${file} cannot be read`)

/** Writes a file, and replaces one that exists. */
export const writeBytes = (file: string, bytes: Uint8Array | string): Effect.Effect<void, FileFailed> =>
  attempt(() => writeFile(file, bytes), `${file} cannot be written`)

/** Creates a folder, and the folders above it, unless it exists. */
export const makeFolder = (folder: string): Effect.Effect<void, FileFailed> =>
  attempt(async () => void await mkdir(folder, { recursive: true }), `${folder} cannot be created`)

/**
 * Replaces a file by a new one at once: another process reads the old text or the new one. Its folders are created. A
 * link to the file stays one, and so does its mode; a new file can be read by this user only.
 */
export const replaceText = (file: string, text: string): Effect.Effect<void, FileFailed> =>
  attempt(async () => {
    await mkdir(dirname(file), { recursive: true })
    const target = existsSync(file) ? await realpath(file) : file
    const mode = existsSync(target) ? (await stat(target)).mode & 0o777 : 0o600
    const temporary = `${target}.${globalThis.crypto.randomUUID()}.tmp`
    try {
      await writeFile(temporary, text, { flag: "wx", mode, flush: true })
      await chmod(temporary, mode)
      await rename(temporary, target)
    } catch (error) {
      await rm(temporary, { force: true })
      throw error
    }
  }, `${file} cannot be written`)

/** The absolute path of a file or folder, if there is one at this path from a folder. */
export const existing = (folder: string, path: string): string | undefined => {
  const absolute = resolve(folder, path)
  return existsSync(absolute) ? absolute : undefined
}

/** Whether the system can start a file of JavaScript or TypeScript as a program. */
const isProgram = (file: string, mode: number): boolean => {
  if (process.platform === "win32" || (mode & constants.S_IXUSR) === 0) return false
  const start = Buffer.alloc(2)
  const descriptor = openSync(file, "r")
  try {
    readSync(descriptor, start)
  } finally {
    closeSync(descriptor)
  }
  return start.toString("latin1") === "#!"
}

/** Whether the system finds a program of this name, which has no separators of a path, in `PATH`. */
const isInPath = (name: string): boolean => {
  const { PATH = "", PATHEXT = "" } = process.env
  const extensions = process.platform === "win32" ? PATHEXT.split(delimiter) : [""]
  return PATH.split(delimiter).some((folder) =>
    folder !== "" && extensions.some((extension) => existsSync(join(folder, name + extension)))
  )
}

/** Whether a word without separators is a program in `PATH`, or a file or a folder of this name. */
export const isProgramName = (word: string): boolean => existsSync(word) || isInPath(word)

/**
 * Whether a word is the path of an existing module of JavaScript or TypeScript, or of a folder of modules, which
 * `skein run` can serve. An executable file that begins with `#!` is a program: it is started as any other one. The name
 * of a folder without a separator is that of a program if there is one, such as `node`.
 */
export const isModule = (word: string): boolean => {
  try {
    const stats = statSync(word)
    if (stats.isDirectory()) return /^\.{1,2}$|[\\/]/.test(word) || !isInPath(word)
    return /\.[cm]?[jt]sx?$/.test(word) && stats.isFile() && !isProgram(word, stats.mode)
  } catch {
    return false
  }
}

/** Where this process runs. */
export const thisPlace = (env: Place["env"]): Place => ({
  platform: process.platform,
  env,
  home: homedir(),
  folder: process.cwd()
})
