/**
 * Encryption of the texts that tasks store: arguments, results and errors, questions and answers, events, results of steps,
 * status messages. Without a key nothing is encrypted.
 *
 * The algorithm is AES-256-GCM, with keys derived by HKDF-SHA256. Each text is bound to its task and its use: a text
 * that was moved to another task, or from a result to an argument, is not decrypted. The columns by which tasks are
 * found stay readable: ids, tools, pools, owners, capabilities of callers, statuses, progress numbers and times; and
 * also the names of steps, sleeps and events, the keys of questions, and digests of the addresses of callers without an owner.
 *
 * A read of a task whose texts cannot be decrypted fails with the `TaskError` reason `KeyError`. A worker leaves such a
 * task as it is, logs that, and retries: a process with a wrong key changes nothing.
 *
 * @example
 * // SKEIN_TASK_KEYS="<new key>,<old key>", each from `openssl rand -base64 32`
 * const Engine = SqliteTasks.layer({ filename: "tasks.db" }).pipe(Layer.provide(Encryption.layerConfig()))
 */
import * as Sealer from "@skein/runtime/Sealer"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { redactTaskIds } from "./internal/base/text.ts"
import { KeyError, TaskError } from "./TaskError.ts"

/**
 * Encrypts and decrypts stored texts. `make` returns one; an application may implement another, on a key service for
 * instance.
 */
export interface Cipher {
  /** Encrypts a text. `associatedData` names the task and the use of the text. It is authenticated, and not secret. */
  readonly encrypt: (text: string, associatedData: string) => Effect.Effect<string, TaskError>
  /**
   * Decrypts a text. Fails with `KeyError` for a text that was not encrypted with the same associated data and one of
   * the keys.
   */
  readonly decrypt: (encrypted: string, associatedData: string) => Effect.Effect<string, TaskError>
  /** Whether texts that are not encrypted are read. See `Options`. */
  readonly readPlaintext: boolean
}

/**
 * A secret: at least 32 bytes, or a text of at least 32 bytes in UTF-8, from a random source (`openssl rand -base64
 * 32`).
 */
export type Key = Uint8Array | string | Redacted.Redacted<string>

/** The keys. */
export interface Options {
  /**
   * The first key encrypts, and all of them decrypt. To change the key, first add the new key in the *second* place in
   * every process, then move it to the first place, and remove the old key when the last task that it encrypted is
   * deleted. Nonces are random: a key is safe for 2^32 texts.
   */
  readonly keys: ReadonlyArray<Key>
  /**
   * Whether texts that are not encrypted are read, until the tasks that were stored without a key are deleted. With it,
   * anyone who can write to the database can insert texts. Default `false`: such a text fails with `KeyError`.
   */
  readonly readPlaintext?: boolean | undefined
}

/** The cipher of the engines that are built with it. Default `undefined`: texts are not encrypted. */
export const Encryption = /* @__PURE__ */ Context.Reference<Cipher | undefined>("@skein/tasks/Encryption", {
  defaultValue: () => undefined
})

const minKeyBytes = 32

const bytesOf = (key: Key): Uint8Array => {
  if (key instanceof Uint8Array) return key
  return new TextEncoder().encode(typeof key === "string" ? key : Redacted.value(key))
}

/** Makes a cipher. Fails with `KeyError` without keys, and for a key of less than 32 bytes. */
export const make = ({ keys, readPlaintext = false }: Options): Effect.Effect<Cipher, TaskError> =>
  Effect.suspend(() => {
    const secrets = keys.map(bytesOf)
    const short = secrets.findIndex((secret) => secret.length < minKeyBytes)
    if (secrets.length === 0) return fail("no key for the encryption of tasks")
    if (short >= 0) return fail(`key ${short + 1} for the encryption of tasks has less than ${minKeyBytes} bytes`)
    return Effect.map(Effect.promise(() => Sealer.make(secrets, "tasks")), (sealer): Cipher => ({
      readPlaintext,
      encrypt: (text, associatedData) => Effect.promise(() => sealer.seal(text, associatedData)),
      decrypt: (encrypted, associatedData) =>
        Effect.flatMap(
          Effect.promise(() => sealer.open(encrypted, associatedData)),
          (text) => text === undefined ? cannotDecrypt(associatedData) : Effect.succeed(text)
        )
    }))
  })

const fail = (message: string): Effect.Effect<never, TaskError> =>
  Effect.fail(new TaskError({ reason: new KeyError({ message }) }))

const cannotDecrypt = (associatedData: string) =>
  fail(
    `cannot decrypt the stored text "${redactTaskIds(associatedData)}": its key is not configured, or it was changed`
  )

/**
 * Encrypts the texts of the engines that it is provided to.
 *
 * @example
 * const Engine = MemoryTasks.layer().pipe(Layer.provide(Encryption.layer({ keys: [key] })))
 */
export const layer = (options: Options): Layer.Layer<never, TaskError> => Layer.effect(Encryption, make(options))

/**
 * The same with keys from configuration: one variable, the keys separated by commas. A missing variable is an error, so
 * that texts do not stay unencrypted by mistake.
 *
 * @example
 * const Engine = SqliteTasks.layer({ filename: "tasks.db" }).pipe(Layer.provide(Encryption.layerConfig("TASK_KEYS")))
 */
export const layerConfig = (
  name = "SKEIN_TASK_KEYS",
  options?: Omit<Options, "keys">
): Layer.Layer<never, TaskError | Config.ConfigError> =>
  Layer.effect(
    Encryption,
    Effect.flatMap(Config.Redacted(name), (value) =>
      make({
        ...options,
        keys: Redacted.value(value).split(",").map((key) => key.trim()).filter((key) => key !== "")
      }))
  )
