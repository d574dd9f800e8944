/**
 * Texts as they are stored: such that every database keeps them, and sealed where a key is given.
 */
import * as Effect from "effect/Effect"
import { TaskError } from "../../TaskError.ts"
import { curt } from "../text.ts"
import type { Sealer } from "./encryption.ts"

const sealedMark = "sealed:"
const escapedMark = "json:"

/**
 * A text that PostgreSQL and SQLite give back as it was: without NUL characters and lone surrogates. Different texts stay different.
 * JSON needs none of this: it escapes both.
 */
export const escape = (text: string): string =>
  text.includes("\0") || text.startsWith(escapedMark) || text.startsWith(sealedMark) || !text.isWellFormed()
    ? `${escapedMark}${JSON.stringify(text)}`
    : text

/** The text that was escaped. */
export const unescape = (stored: string): string =>
  stored.startsWith(escapedMark) ? JSON.parse(stored.slice(escapedMark.length)) as string : stored

/** The cause of a `TaskError` that no time heals: what is to be kept cannot be, or what is kept was broken. */
export class Unfit extends Error {}

/** Whether it is of no use to try again. */
export const isUnfit = (error: unknown): boolean => error instanceof TaskError && error.cause instanceof Unfit

/** Says so. */
export const unfit = (message: string, cause?: unknown): TaskError =>
  new TaskError({ reason: "Store", message, cause: new Unfit(message, { cause }) })

/** A value as JSON text. Fails for what JSON cannot say: a `bigint`, a cycle, `undefined`. */
export const json = (value: unknown): Effect.Effect<string, TaskError> =>
  Effect.try({
    try: () => {
      const text = JSON.stringify(value) as string | undefined
      if (text === undefined) throw new TypeError("undefined is no JSON")
      return text
    },
    catch: (cause) => unfit(`What is to be kept is no JSON: ${String(cause)}`, cause)
  })

/** What JSON text says. Fails for what is none. */
export const parse = <A>(text: string): Effect.Effect<A, TaskError> =>
  Effect.try({
    try: () => JSON.parse(text) as A,
    catch: (cause) => unfit(`What is kept is no JSON: ${String(cause)}`, cause)
  })

const noKey = (about: string) =>
  new TaskError({ reason: "Key", message: `What is kept as "${curt(about)}" is sealed, and no key is given` })
const notSealed = (about: string) =>
  new TaskError({ reason: "Key", message: `What is kept as "${curt(about)}" is not sealed, though a key is given` })

/** A vault: seals what is stored, and opens it. */
export interface Vault {
  readonly seal: (text: string, about: string) => Effect.Effect<string, TaskError>
  readonly open: (stored: string, about: string) => Effect.Effect<string, TaskError>
  /** Whether `open` gives texts as they are, unless they are sealed. */
  readonly plain: boolean
}

/** Stores texts as they are. */
export const openVault: Vault = {
  plain: true,
  seal: Effect.succeed,
  open: (stored, about) => stored.startsWith(sealedMark) ? Effect.fail(noKey(about)) : Effect.succeed(stored)
}

/** Stores texts sealed. */
export const sealedVault = (sealer: Sealer): Vault => ({
  plain: false,
  seal: (text, about) => Effect.map(sealer.seal(text, about), (sealed) => sealedMark + sealed),
  open: (stored, about) => {
    if (stored.startsWith(sealedMark)) return sealer.open(stored.slice(sealedMark.length), about)
    return sealer.readPlain ? Effect.succeed(stored) : Effect.fail(notSealed(about))
  }
})
