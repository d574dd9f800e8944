/**
 * The tokens of one account at one server in the store, which other processes share, and those that the store did not
 * take.
 */
import * as Effect from "effect/Effect"
import type { OAuthError } from "../protocol/OAuthError.ts"
import { TokenStoreError } from "../stores/TokenStoreError.ts"
import type { Environment } from "./environment.ts"
import * as records from "./records.ts"
import type { SavedTokens } from "./records.ts"

/** Returns a text that differs between any two stored tokens. */
const identify = (tokens: SavedTokens | undefined): string | undefined =>
  tokens === undefined ? undefined : JSON.stringify([tokens.accessToken, tokens.refreshToken])

/** Whether an operation failed because another process has taken the lock over (`SqlTokenStore`). */
export const isLockLost = ({ reason }: OAuthError): boolean =>
  reason._tag === "StoreFailed" && reason.cause instanceof TokenStoreError && reason.cause.reason._tag === "LockLost"

/** See the module. All operations but `state` run in the lock of the tokens. */
export const makeStoredTokens = ({ store }: Environment, key: string) => {
  /** Tokens that the store did not take. They are newer than those that it had then. */
  let unsaved: SavedTokens | undefined
  /** The tokens that were in the store when this process had the lock. */
  let stored: string | undefined

  /** Reads the tokens outside of the lock, also while a process replaces them. */
  const state: Effect.Effect<SavedTokens | undefined, OAuthError> = Effect.suspend(() =>
    unsaved === undefined ? records.read(store, records.SavedTokens, key) : Effect.succeed(unsaved)
  )

  /**
   * Reads the tokens. Tokens that the store did not take count as long as it has what they replaced. If another process
   * has stored others meanwhile, or has signed out, they are dropped.
   */
  const current: Effect.Effect<SavedTokens | undefined, OAuthError> = Effect.suspend(() =>
    Effect.map(records.read(store, records.SavedTokens, key), (tokens) => {
      const found = identify(tokens)
      if (found !== stored) unsaved = undefined
      stored = found
      return unsaved ?? tokens
    })
  )

  /** Whether there are tokens that the store did not take. */
  const isUnsaved = (): boolean => unsaved !== undefined

  /**
   * Writes tokens. If the store fails, they stay in memory and are written later: the old refresh token may be dead
   * already, and reading it back would use it again.
   */
  const write = (tokens: SavedTokens): Effect.Effect<void, OAuthError> =>
    Effect.suspend(() => {
      unsaved = tokens
      return Effect.map(records.write(store, key, tokens), () => {
        unsaved = undefined
        stored = identify(tokens)
      })
    })

  /** Removes the tokens. */
  const remove: Effect.Effect<void, OAuthError> = Effect.suspend(() =>
    Effect.map(records.remove(store, key), () => {
      unsaved = undefined
      stored = undefined
    })
  )

  /** Drops tokens that the store did not take: the process that took the lock over has stored newer ones. */
  const drop = (): void => {
    unsaved = undefined
  }

  return { state, current, isUnsaved, write, remove, drop }
}
