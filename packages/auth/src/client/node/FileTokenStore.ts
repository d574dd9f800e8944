/**
 * A token store in files, for the programs of one user on one computer. All processes and threads that use the same
 * folder share their sign-ins: the user is asked once, and a refresh token is used once.
 *
 * **The folder** is readable for its user only (0700), and so is each file (0600). A wider mode is repaired; a folder or
 * a file of another user is refused. There is a file for each key, which is written aside, flushed, and renamed, so that
 * a power failure leaves the old value or the new one. A damaged file is an error that names the file to delete. The
 * tokens are not encrypted: everything that runs as this user can read them. Wrap the store in `EncryptedTokenStore`
 * with a key from the keychain of the system to change that.
 *
 * **The lock** of a key is an empty file beside its value. The operating system releases the lock when its
 * process ends, also after `kill -9`. A process that is stopped (SIGSTOP, a debugger) keeps its locks: the others wait for
 * `lockTimeout` and then fail with the reason `LockTimeout`.
 *
 * **Gotchas**
 *
 * - The folder must be on a disk of this computer. Locks of network drives are not reliable: use `SqlTokenStore`.
 * - Nothing else may open the `.lock` files: on POSIX, a process that closes any descriptor of such a file loses its
 *   locks.
 * - On Windows modes have no effect; the profile of a user is readable for this user and administrators.
 *
 * @example
 * const Store = FileTokenStore.layer({ app: "teahouse" })
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as UserDirectories from "effect/persistence/UserDirectories"
import * as Redacted from "effect/Redacted"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { makeFileLock } from "./fileLock.ts"
import { fileOf, prepareFolder, readFile, removeFile, writeFile } from "./tokenFiles.ts"
import { checkSize, nameOf, unavailable } from "../stores/values.ts"
import { makeTokenLocks } from "../stores/tokenLocks.ts"
import * as TokenStore from "../stores/TokenStore.ts"
import type { TokenStoreError } from "../stores/TokenStoreError.ts"

/** The folder, and the bounds of the store. */
export type Options =
  & TokenStore.Options
  & (
    | {
      /**
       * The name of the application: the folder is `tokens` in its data directory of this user, as
       * `effect/persistence/UserDirectories` finds it (`~/.local/share/<app>/tokens` on Linux).
       */
      readonly app: string
      readonly folder?: undefined
    }
    | {
      /** The folder. It is created if it does not exist. */
      readonly folder: string
      readonly app?: undefined
    }
  )

const folderOf = (options: Options): Effect.Effect<string, TokenStoreError> => {
  if (options.folder !== undefined) return Effect.succeed(options.folder)
  const { app } = options
  if (!/^(?!\.+$)[^/\\\0]+$/.test(app)) {
    return Effect.fail(unavailable(`cannot use ${JSON.stringify(app)} as the name of an application's folder`))
  }
  return UserDirectories.make().data(app).pipe(
    Effect.map((data) => join(data, "tokens")),
    Effect.mapError((cause) =>
      unavailable(`cannot find the folder for the tokens of "${app}": ${cause.message}`, cause)
    )
  )
}

/**
 * Makes a store. It creates the folder, and fails with `StoreUnavailable` if it cannot be used.
 *
 * @example
 * const store = yield* FileTokenStore.make({ folder: "/var/lib/teahouse/tokens" })
 */
export const make = (options: Options): Effect.Effect<TokenStore.TokenStore["Service"], TokenStoreError> =>
  Effect.gen(function*() {
    const folder = yield* folderOf(options)
    yield* prepareFolder(folder)
    const withFileLock = makeTokenLocks(
      options,
      (name) => makeFileLock(join(folder, `${name}.lock`), () => existsSync(fileOf(folder, name)))
    )
    return TokenStore.TokenStore.of({
      get: (key) =>
        Effect.map(
          Effect.flatMap(nameOf(key), (name) => readFile(folder, name, key)),
          (value) => value === undefined ? Option.none() : Option.some(Redacted.make(value))
        ),
      set: (key, value) =>
        Effect.andThen(
          checkSize(value),
          Effect.flatMap(nameOf(key), (name) => writeFile(folder, name, key, Redacted.value(value)))
        ),
      remove: (key) => Effect.flatMap(nameOf(key), (name) => removeFile(folder, name)),
      withLock: (key, effect, options) => Effect.flatMap(nameOf(key), (name) => withFileLock(name, effect, options))
    })
  })

/**
 * Provides a store in files.
 *
 * @example
 * const program = Effect.provide(main, FileTokenStore.layer({ app: "teahouse" }))
 */
export const layer = (options: Options): Layer.Layer<TokenStore.TokenStore, TokenStoreError> =>
  Layer.effect(TokenStore.TokenStore, make(options))
