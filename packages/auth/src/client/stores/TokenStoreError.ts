/**
 * The error of a token store. Its `reason` is a tagged error, so that `Effect.catchReason` selects one.
 *
 * @example
 * store.get(key).pipe(Effect.catchReason("TokenStoreError", "InvalidEntry", () => Effect.succeedNone))
 */
import * as PrintableError from "@skein/protocol/PrintableError"

/** The lock was not obtained within `lockTimeout`: its holder is slow, or was stopped. The effect did not run. */
export class LockTimeout extends PrintableError.tagged("LockTimeout") {}

/**
 * The lock was lost while its effect ran: the process was stopped for longer than the lease of the lock, and another
 * process holds the lock now. The effect is interrupted, and what it wants to write is refused (`SqlTokenStore`).
 * Do not keep the tokens that could not be written: the store has newer ones.
 */
export class LockLost extends PrintableError.tagged("LockLost") {}

/** The store cannot be read or written: no permission, no space, no connection. */
export class StoreUnavailable extends PrintableError.tagged("StoreUnavailable")<{
  readonly cause?: unknown
}> {}

/** A stored value is incomplete, or another program wrote it. The message says what to delete. */
export class InvalidEntry extends PrintableError.tagged("InvalidEntry") {}

/** The keys of `EncryptedTokenStore` are missing or too short, or none of them decrypts a value. */
export class KeyError extends PrintableError.tagged("KeyError") {}

/** A value to write has more bytes than `maxValueBytes`. */
export class ValueTooLarge extends PrintableError.tagged("ValueTooLarge") {}

/** Why a store failed. */
export type Reason = LockTimeout | LockLost | StoreUnavailable | InvalidEntry | KeyError | ValueTooLarge

/**
 * A store could not read or write, or a lock was not obtained in time. The message is that of the reason. It names the
 * operation and where the value is, and never a value. Nothing was changed.
 */
export class TokenStoreError extends PrintableError.tagged("TokenStoreError")<{
  readonly reason: Reason
}> {
  override readonly cause: unknown

  /** Takes a reason, or the message and the cause of a `StoreUnavailable`: most errors of a store of your own are one. */
  constructor(fields: { readonly reason: Reason } | { readonly message: string; readonly cause?: unknown }) {
    const reason = "reason" in fields ? fields.reason : new StoreUnavailable(fields)
    super({ reason, message: reason.message })
    this.cause = reason
  }
}
