/**
 * Encryption of the texts that tasks store.
 */
import * as Core from "@skein/tasks/Encryption"
import { KeyError, TaskError } from "@skein/tasks/TaskError"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Awaitable } from "../base/types.ts"

/** The keys of stored texts (AES-256-GCM). */
export interface TaskKeys {
  /**
   * Secrets of at least 32 bytes each, from a random source (`openssl rand -base64 32`). The first key encrypts, and all of
   * them decrypt. To change the key, add the new one in the second place in every process, then move it to the first place,
   * and remove the old one when its last task is deleted.
   */
  readonly keys: ReadonlyArray<string | Uint8Array>
  /** Whether texts that are not encrypted are read. Default `false`: such a text fails with `KeyError`. */
  readonly readPlaintext?: boolean | undefined
}

/** Encrypts and decrypts stored texts, by a key service for instance. An error that it throws is a `KeyError`. */
export interface TaskCipher {
  /** `associatedData` names the task and the use of the text. It is authenticated, and not secret. */
  readonly encrypt: (text: string, associatedData: string) => Awaitable<string>
  /** Throws for a text that was not encrypted with the same associated data. */
  readonly decrypt: (encrypted: string, associatedData: string) => Awaitable<string>
  /** Whether texts that are not encrypted are read. Default `false`. */
  readonly readPlaintext?: boolean | undefined
}

/** The encryption of a store. */
export interface EncryptionOptions {
  /**
   * Encrypts arguments, results, questions, answers, results of steps and status messages. Names, owners, times and ids stay
   * readable. Default: nothing is encrypted. A server with an invalid key fails to start with `KeyError`.
   */
  readonly encryption?: TaskKeys | TaskCipher | undefined
}

const attempt = (run: () => Awaitable<string>): Effect.Effect<string, TaskError> =>
  Effect.tryPromise({
    try: async () => run(),
    catch: (cause) =>
      new TaskError({ reason: new KeyError({ message: cause instanceof Error ? cause.message : String(cause) }) })
  })

/** Encrypts the texts of an engine. */
export const encrypted = <A, E>(
  encryption: TaskKeys | TaskCipher | undefined,
  engine: Layer.Layer<A, E>
): Layer.Layer<A, E | TaskError> => {
  if (encryption === undefined) return engine
  if ("keys" in encryption) return Layer.provide(engine, Core.layer(encryption))
  const { decrypt, encrypt, readPlaintext = false } = encryption
  return Layer.provide(
    engine,
    Layer.succeed(Core.Encryption, {
      readPlaintext,
      encrypt: (text, associatedData) => attempt(() => encrypt(text, associatedData)),
      decrypt: (text, associatedData) => attempt(() => decrypt(text, associatedData))
    })
  )
}
