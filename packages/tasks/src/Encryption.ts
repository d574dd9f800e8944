/**
 * Encryption of what tasks keep: arguments, results and errors, questions and their answers, what steps returned, status messages.
 * Nothing is encrypted by default.
 *
 * AES-256-GCM, with keys derived by HKDF-SHA256. Each text is bound to what it is and whose: one that was moved to another task, or
 * from a result to an argument, does not open. What tasks are found by stays readable: their ids, tools, pools, owners, callers'
 * capabilities, statuses, numbers of progress and times; and so do the names of steps and sleeps, and the keys of questions.
 *
 * Who looks at a task whose texts cannot be opened fails with a `TaskError` whose reason is `Key`. A worker that is to run it leaves it
 * as it is, says so in its log, and tries again: a process with the wrong key spoils nothing.
 *
 * @example
 * // SKEIN_TASK_KEYS="<new key>,<old key>", each from `openssl rand -base64 32`
 * const Engine = SqliteTasks.layer({ filename: "tasks.db" }).pipe(Layer.provide(Encryption.layerConfig()))
 */
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { makeSealer, type Sealer } from "./internal/store/encryption.ts"
import { TaskError } from "./TaskError.ts"

export type { Sealer } from "./internal/store/encryption.ts"

/** A secret: 32 bytes at least, or a text of 32 characters at least, of a random source (`openssl rand -base64 32`). */
export type Key = Uint8Array | string | Redacted.Redacted<string>

/** What is encrypted with. */
export interface Options {
  /**
   * The first one seals, all of them open. To change the key: put the new one in the *second* place in every process, then in the
   * first, and leave the old one out when the last task that it sealed is forgotten. Nonces are random: a key is safe for 2^32 texts.
   */
  readonly keys: ReadonlyArray<Key>
  /**
   * Whether texts that are not encrypted are read: for the time until those tasks are forgotten that were kept before there was a
   * key. Whoever can write to the database can then put texts of their own there. Default `false`: they fail with `Key`.
   */
  readonly readPlain?: boolean | undefined
}

/** How the engines that are built with it keep texts; `undefined`, the default: as they are. */
export const Encryption = /* @__PURE__ */ Context.Reference<Sealer | undefined>("@skein/tasks/Encryption", {
  defaultValue: () => undefined
})

const least = 32

const bytesOf = (key: Key): Uint8Array => {
  if (key instanceof Uint8Array) return key
  return new TextEncoder().encode(typeof key === "string" ? key : Redacted.value(key))
}

/** A sealer with keys. Fails with `Key` where there is none, or one of fewer than 32 bytes. */
export const make = ({ keys, readPlain = false }: Options): Effect.Effect<Sealer, TaskError> =>
  Effect.suspend(() => {
    const secrets = keys.map(bytesOf)
    const short = secrets.findIndex((secret) => secret.length < least)
    if (secrets.length === 0) {
      return Effect.fail(new TaskError({ reason: "Key", message: "There is no key to encrypt tasks with" }))
    }
    if (short >= 0) {
      const message = `Key ${short + 1} for the encryption of tasks has fewer than ${least} bytes`
      return Effect.fail(new TaskError({ reason: "Key", message }))
    }
    return makeSealer(secrets, readPlain)
  })

/** Encrypts what the engines that it is provided to keep. */
export const layer = (options: Options): Layer.Layer<never, TaskError> => Layer.effect(Encryption, make(options))

/**
 * The same with keys from configuration: one variable, the keys separated by commas. A variable that is not there is an error, so
 * that nothing is kept unencrypted by a mistake.
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
