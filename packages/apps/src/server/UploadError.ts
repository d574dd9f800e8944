/**
 * Why an upload is refused: see `Upload`. The user reads the message on the page.
 */
import * as PrintableError from "@skein/protocol/PrintableError"

/** There are more files than `maxFiles`, or none. */
export class WrongCount extends PrintableError.tagged("WrongCount") {}

/** A file is larger than `maxFileBytes`. */
export class FileTooLarge extends PrintableError.tagged("FileTooLarge") {}

/** The files together are larger than `maxTotalBytes`. */
export class TotalTooLarge extends PrintableError.tagged("TotalTooLarge") {}

/** `accept` has neither the type of a file nor the end of its name. */
export class TypeNotAccepted extends PrintableError.tagged("TypeNotAccepted") {}

/** The name of a file is empty, longer than 255 characters, or has a slash, a backslash or a control character. */
export class InvalidName extends PrintableError.tagged("InvalidName") {}

/** The uploads in progress have too many bytes: those of a client twice `maxTotalBytes`, or all `maxBufferedBytes`. */
export class BuffersFull extends PrintableError.tagged("BuffersFull") {}

/** A part is not base64, has more than 262,144 bytes, or does not follow the part before. */
export class InvalidPart extends PrintableError.tagged("InvalidPart") {}

/** The upload ends before all bytes of all files have arrived. */
export class Incomplete extends PrintableError.tagged("Incomplete") {}

/** Why an upload is refused. */
export type Reason =
  | WrongCount
  | FileTooLarge
  | TotalTooLarge
  | TypeNotAccepted
  | InvalidName
  | BuffersFull
  | InvalidPart
  | Incomplete

/**
 * An upload is refused. The `reason` has the details, and the `message` is that of the reason.
 *
 * @example
 * const isTooLarge = ({ reason }: UploadError) => reason._tag === "FileTooLarge" || reason._tag === "TotalTooLarge"
 */
export class UploadError extends PrintableError.tagged("UploadError")<{ readonly reason: Reason }> {
  constructor(reason: Reason) {
    super({ reason, message: reason.message })
  }
}
