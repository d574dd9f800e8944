/**
 * Texts as they are stored: escaped so that every database returns them unchanged, and encrypted if there is a key.
 */
import * as Json from "@skein/protocol/Json"
import * as Effect from "effect/Effect"
import { isSqlError } from "effect/sql/SqlError"
import type { Cipher } from "../../Encryption.ts"
import { KeyError, StoreError, TaskError } from "../../TaskError.ts"
import { redactTaskIds } from "../base/text.ts"

/** The prefix of encrypted texts. */
export const encryptedPrefix = "sealed:"
const escapedPrefix = "json:"

/**
 * Escapes NUL characters and lone surrogates, which PostgreSQL and SQLite do not store. Different texts stay different.
 * JSON texts need no escaping: JSON escapes both.
 */
export const escape = (text: string): string =>
  text.includes("\0") || text.startsWith(escapedPrefix) || text.startsWith(encryptedPrefix) || !text.isWellFormed()
    ? `${escapedPrefix}${JSON.stringify(text)}`
    : text

/** The text that was escaped. */
export const unescape = (stored: string): string =>
  stored.startsWith(escapedPrefix) ? JSON.parse(stored.slice(escapedPrefix.length)) as string : stored

/**
 * The cause of a `StoreError` that a retry does not help: the value cannot be stored, or the stored value is invalid.
 */
export class PermanentFailure extends Error {}

/**
 * Whether the database refuses a value, so that it refuses it again: the value is too large, or a check or a trigger
 * rejects it. SQLite reports SQLITE_TOOBIG (18), SQLITE_CONSTRAINT_CHECK (275) and SQLITE_CONSTRAINT_TRIGGER (1811);
 * PostgreSQL the classes 22 and 54 of SQLSTATE, `check_violation` and `raise_exception`. A division by zero (22012) is
 * part of the statements of the store.
 */
const isRefusal = (error: unknown): boolean => {
  if (!isSqlError(error)) return false
  const { code, errcode } = (error.reason.cause ?? {}) as { readonly code?: unknown; readonly errcode?: unknown }
  return (typeof code === "string" && /^(22(?!012)|54)\w{3}$|^(23514|P0001)$/.test(code)) ||
    (typeof errcode === "number" && [18, 275, 1811].includes(errcode))
}

/** Whether a retry does not help. */
export const isPermanent = (error: unknown): boolean => {
  if (!(error instanceof TaskError) || error.reason._tag !== "StoreError") return false
  const { cause } = error.reason
  return cause instanceof PermanentFailure || isRefusal(cause)
}

/** A `TaskError` that a retry does not help. */
export const permanentError = (message: string, cause?: unknown): TaskError =>
  new TaskError({ reason: new StoreError({ message, cause: new PermanentFailure(message, { cause }) }) })

/** A value as JSON text, with the digits of numbers that JavaScript rounds. Fails for a value without a JSON form: a `bigint`, a cycle, `undefined`. */
export const toJson = (value: unknown): Effect.Effect<string, TaskError> =>
  Effect.try({
    try: () => {
      const text = Json.exactText(value)
      if (text === undefined) throw new TypeError("undefined has no JSON form")
      return text
    },
    catch: (cause) => permanentError(`cannot store a value without a JSON form: ${String(cause)}`, cause)
  })

/** The value of a JSON text. Fails for invalid JSON. */
export const fromJson = <A>(text: string): Effect.Effect<A, TaskError> =>
  Effect.try({
    try: () => Json.parse(text) as A,
    catch: (cause) => permanentError(`invalid JSON in a stored text: ${String(cause)}`, cause)
  })

const keyError = (associatedData: string, problem: string) => {
  const message = `the stored text "${redactTaskIds(associatedData)}" ${problem}`
  return Effect.fail(new TaskError({ reason: new KeyError({ message }) }))
}

/** Converts texts to their stored form and back. See `Cipher` for `associatedData`. */
export interface StoredTexts {
  readonly encrypt: (text: string, associatedData: string) => Effect.Effect<string, TaskError>
  readonly decrypt: (stored: string, associatedData: string) => Effect.Effect<string, TaskError>
  /** Whether `decrypt` returns texts unchanged unless they are encrypted. */
  readonly isPlain: boolean
}

/** Stores texts without encryption. */
export const plainTexts: StoredTexts = {
  isPlain: true,
  encrypt: Effect.succeed,
  decrypt: (stored, associatedData) =>
    stored.startsWith(encryptedPrefix)
      ? keyError(associatedData, "is encrypted, and no key is configured")
      : Effect.succeed(stored)
}

/** Stores texts encrypted. */
export const encryptedTexts = (cipher: Cipher): StoredTexts => ({
  isPlain: false,
  encrypt: (text, associatedData) =>
    Effect.map(cipher.encrypt(text, associatedData), (encrypted) => encryptedPrefix + encrypted),
  decrypt: (stored, associatedData) => {
    if (stored.startsWith(encryptedPrefix)) return cipher.decrypt(stored.slice(encryptedPrefix.length), associatedData)
    return cipher.readPlaintext
      ? Effect.succeed(stored)
      : keyError(associatedData, "is not encrypted, although a key is configured")
  }
})
