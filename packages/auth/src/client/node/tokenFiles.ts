/**
 * The files of `FileTokenStore`: one per key, in a folder that only its user can read.
 */
import * as Effect from "effect/Effect"
import { randomUUID } from "node:crypto"
import { constants, promises as fs, type Stats } from "node:fs"
import { join } from "node:path"
import { TokenStoreError } from "../stores/TokenStoreError.ts"
import { invalidEntry, maxValueBytes, unavailable } from "../stores/values.ts"
import { parseObject } from "../../shared/web.ts"

const isWindows = process.platform === "win32"

/** How long a file that is being written stays after its process has died: another process may be writing it. */
const abandonedAfterMillis = 3_600_000

const codeOf = (cause: unknown): unknown => cause instanceof Error && "code" in cause ? cause.code : undefined

const messageOf = (cause: unknown): string => cause instanceof Error ? cause.message : String(cause)

/** Runs an operation. Errors of the file system name the path and the error code, and no content. */
const attempt = <A>(what: string, path: string, run: () => Promise<A>): Effect.Effect<A, TokenStoreError> =>
  Effect.tryPromise({
    try: run,
    catch: (cause) =>
      cause instanceof TokenStoreError
        ? cause
        : unavailable(`cannot ${what} "${path}" of the token store: ${messageOf(cause)}`, cause)
  })

/** A folder may be a symbolic link, but not one that another user made: it could lead into any folder of this user. */
const refuseForeignLink = async (folder: string): Promise<void> => {
  const { uid } = await fs.lstat(folder)
  if (!isWindows && uid !== process.geteuid!() && uid !== 0) throw foreign(folder, uid)
}

const foreign = (path: string, uid: number): TokenStoreError =>
  unavailable(
    `"${path}" of the token store belongs to user ${uid}, and this process runs as user ${process.geteuid!()}: ` +
      "choose another folder, or give it to this user"
  )

/** Repairs the mode of what belongs to this user, and refuses what belongs to another. */
const secure = async (
  path: string,
  stats: Stats,
  mode: number,
  chmod: (mode: number) => Promise<void>
): Promise<void> => {
  if (isWindows) return
  if (stats.uid !== process.geteuid!()) throw foreign(path, stats.uid)
  if ((stats.mode & 0o777) !== mode) await chmod(mode)
}

/** Creates the folder if it does not exist, makes it private, and deletes what dead processes have left in it. */
export const prepareFolder = (folder: string): Effect.Effect<void, TokenStoreError> =>
  attempt("use the folder", folder, async () => {
    await fs.mkdir(folder, { recursive: true, mode: 0o700 })
    await refuseForeignLink(folder)
    await secure(folder, await fs.stat(folder), 0o700, (mode) => fs.chmod(folder, mode))
    for (const name of await fs.readdir(folder)) {
      if (!/^\.[\w-]{43}\.[\w-]{36}$/.test(name)) continue
      const path = join(folder, name)
      const stats = await fs.lstat(path).catch(() => undefined)
      if (stats !== undefined && stats.mtimeMs < Date.now() - abandonedAfterMillis) await fs.rm(path, { force: true })
    }
  })

/** The path of the file of a key, by the name of the key. */
export const fileOf = (folder: string, name: string): string => join(folder, `${name}.json`)

/** Makes the last rename or removal in the folder durable. Windows has no such call, and does it without one. */
const syncFolder = async (folder: string): Promise<void> => {
  if (isWindows) return
  const handle = await fs.open(folder, constants.O_RDONLY)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const damaged = (path: string): TokenStoreError =>
  invalidEntry(`"${path}" of the token store is damaged, or another program wrote it; delete it, and sign in again`)

const readText = async (path: string, maxBytes: number): Promise<string | undefined> => {
  let handle: fs.FileHandle
  try {
    // Never a link: it would lead the next reader to a file of another user. Not blocking: it may be a pipe.
    handle = await fs.open(path, constants.O_RDONLY | (isWindows ? 0 : constants.O_NOFOLLOW | constants.O_NONBLOCK))
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return undefined
    if (codeOf(cause) === "ELOOP") throw invalidEntry(`"${path}" of the token store is a symbolic link; delete it`)
    throw cause
  }
  try {
    const stats = await handle.stat()
    if (!stats.isFile() || stats.size > maxBytes) throw damaged(path)
    await secure(path, stats, 0o600, (mode) => handle.chmod(mode))
    return await handle.readFile("utf8")
  } finally {
    await handle.close()
  }
}

/** Reads the value of a key. The content of a file names its key, so that a copy under another name is refused. */
export const readFile = (
  folder: string,
  name: string,
  key: string
): Effect.Effect<string | undefined, TokenStoreError> => {
  const path = fileOf(folder, name)
  return attempt("read", path, async () => {
    // JSON writes a byte as six characters at most. The key has its own length.
    const text = await readText(path, 6 * (maxValueBytes + key.length) + 1024)
    if (text === undefined) return undefined
    const { key: named, value } = parseObject(text) ?? {}
    if (typeof value !== "string" || named !== key) throw damaged(path)
    return value
  })
}

/** Writes the value of a key aside and renames the file: a reader sees the old one or the new one, also after a crash. */
export const writeFile = (
  folder: string,
  name: string,
  key: string,
  value: string
): Effect.Effect<void, TokenStoreError> => {
  const path = fileOf(folder, name)
  // Interruption does not stop the promise. The write ends, and nothing of it remains if it fails.
  return Effect.uninterruptible(attempt("write", path, async () => {
    const aside = join(folder, `.${name}.${randomUUID()}`)
    try {
      const handle = await fs.open(aside, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
      try {
        await handle.writeFile(`${JSON.stringify({ key, value })}\n`)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await fs.rename(aside, path)
    } catch (cause) {
      await fs.rm(aside, { force: true }).catch(() => {})
      throw cause
    }
    await syncFolder(folder)
  }))
}

/** Removes the file of a key. */
export const removeFile = (folder: string, name: string): Effect.Effect<void, TokenStoreError> => {
  const path = fileOf(folder, name)
  return Effect.uninterruptible(attempt("remove", path, async () => {
    await fs.rm(path, { force: true })
    await syncFolder(folder)
  }))
}
