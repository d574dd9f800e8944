/**
 * The tokens of one account at one server in the store, which other processes share, and those that the store did not
 * take.
 */
import * as Effect from "effect/Effect"
import type { OAuthError } from "../protocol/OAuthError.ts"
import { TokenStoreError } from "../stores/TokenStoreError.ts"
import type { Environment } from "./environment.ts"
import { read, remove, SavedTokens, write } from "./records.ts"

/** Returns a text that differs between any two stored tokens. */
const identify = (tokens: SavedTokens | undefined): string | undefined =>
  tokens === undefined ? undefined : JSON.stringify([tokens.accessToken, tokens.refreshToken])

/** Whether an operation failed because another process has taken the lock over (`SqlTokenStore`). */
export const isLockLost = ({ reason }: OAuthError): boolean =>
  reason._tag === "StoreFailed" && reason.cause instanceof TokenStoreError && reason.cause.reason._tag === "LockLost"

/** See the module. All operations but `state` run in the lock of the tokens. */
export class StoredTokens {
  readonly #store: Environment["store"]
  readonly #key: string
  /** Tokens that the store did not take. They are newer than those that it had then. */
  #unsaved: SavedTokens | undefined = undefined
  /** The tokens that were in the store when this process had the lock. */
  #stored: string | undefined = undefined

  constructor({ store }: Environment, key: string) {
    this.#store = store
    this.#key = key
  }

  /** Reads the tokens outside of the lock, also while a process replaces them. */
  readonly state: Effect.Effect<SavedTokens | undefined, OAuthError> = Effect.suspend(() =>
    this.#unsaved === undefined ? read(this.#store, SavedTokens, this.#key) : Effect.succeed(this.#unsaved)
  )

  /**
   * Reads the tokens. Tokens that the store did not take count as long as it has what they replaced. If another process
   * has stored others meanwhile, or has signed out, they are dropped.
   */
  readonly current: Effect.Effect<SavedTokens | undefined, OAuthError> = Effect.suspend(() =>
    Effect.map(read(this.#store, SavedTokens, this.#key), (tokens) => {
      const stored = identify(tokens)
      if (stored !== this.#stored) this.#unsaved = undefined
      this.#stored = stored
      return this.#unsaved ?? tokens
    })
  )

  /** Whether there are tokens that the store did not take. */
  get isUnsaved(): boolean {
    return this.#unsaved !== undefined
  }

  /**
   * Writes tokens. If the store fails, they stay in memory and are written later: the old refresh token may be dead
   * already, and reading it back would use it again.
   */
  write(tokens: SavedTokens): Effect.Effect<void, OAuthError> {
    return Effect.suspend(() => {
      this.#unsaved = tokens
      return Effect.map(write(this.#store, this.#key, tokens), () => {
        this.#unsaved = undefined
        this.#stored = identify(tokens)
      })
    })
  }

  /** Removes the tokens. */
  readonly remove: Effect.Effect<void, OAuthError> = Effect.suspend(() =>
    Effect.map(remove(this.#store, this.#key), () => {
      this.#unsaved = undefined
      this.#stored = undefined
    })
  )

  /** Drops tokens that the store did not take: the process that took the lock over has stored newer ones. */
  drop(): void {
    this.#unsaved = undefined
  }
}
