/**
 * Why a ready app cannot ask the user, or cannot take an answer: see `Approval`, `Choice`, `Form` and `Upload`. The model, or the
 * page, receives the message.
 */
import * as PrintableError from "@skein/protocol/PrintableError"

/** The question cannot be shown: it has no title, has more than 20,000 characters, or has options that are not allowed. */
export class InvalidQuestion extends PrintableError.tagged("InvalidQuestion") {}

/** The arguments of the call have more than 65,536 characters. */
export class InputTooLarge extends PrintableError.tagged("InputTooLarge") {}

/** The client, or all clients together, have too many open questions: `maxOpenPerClient`, `maxOpen`. */
export class TooManyOpen extends PrintableError.tagged("TooManyOpen") {}

/** The client shows no pages, and no form can be used in their place. The user was not asked. */
export class CannotAsk extends PrintableError.tagged("CannotAsk") {}

/** The user dismissed the question, or declined a choice. */
export class NoAnswer extends PrintableError.tagged("NoAnswer") {}

/** The question is answered already, its `timeout` has passed, its session has ended, or it belongs to another caller. */
export class NotOpen extends PrintableError.tagged("NotOpen") {}

/** The answer is not one of the options. */
export class InvalidAnswer extends PrintableError.tagged("InvalidAnswer") {}

/** Why the user is not asked, or an answer is not taken. */
export type Reason = InvalidQuestion | InputTooLarge | TooManyOpen | CannotAsk | NoAnswer | NotOpen | InvalidAnswer

/**
 * The user cannot be asked, or the answer cannot be taken. The `reason` has the details, and the `message` is that of the
 * reason.
 *
 * @example
 * const isClosed = (error: AskError) => error.reason._tag === "NotOpen"
 */
export class AskError extends PrintableError.tagged("AskError")<{ readonly reason: Reason }> {
  constructor(reason: Reason) {
    super({ reason, message: reason.message })
  }
}
