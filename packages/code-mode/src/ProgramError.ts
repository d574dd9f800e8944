/**
 * Why a program of a model has no result.
 */
import * as PrintableError from "@skein/protocol/PrintableError"

/** The place of an error in the code of the model. */
export interface Position {
  /** The line, from 1. */
  readonly line: number
  /** The column, from 1. */
  readonly column: number
}

/** The program threw, or is not JavaScript. */
export class Thrown extends PrintableError.tagged("Thrown")<{
  /** Where it was thrown, if the code of the model is on the stack. */
  readonly position: Position | undefined
}> {}

/** The program exceeded a bound. */
export class LimitExceeded extends PrintableError.tagged("LimitExceeded")<{
  /** The bound: an option, or `maxCodeChars` or `maxStackBytes`, which are fixed. */
  readonly limit:
    | "maxCodeChars"
    | "timeout"
    | "computingTimeout"
    | "maxMemoryBytes"
    | "maxStackBytes"
    | "maxResultBytes"
    | "maxRuns"
    | "maxPerClient"
}> {}

/** The program waits for a promise that nothing settles. */
export class NeverSettles extends PrintableError.tagged("NeverSettles") {}

/** The result has no JSON: it is cyclic, for example. */
export class InvalidResult extends PrintableError.tagged("InvalidResult") {}

/** The sandbox cannot run programs here, or its thread has ended. */
export class Unavailable extends PrintableError.tagged("Unavailable") {}

/** Why a program has no result. */
export type Reason = Thrown | LimitExceeded | NeverSettles | InvalidResult | Unavailable

/**
 * A program has no result. The `reason` has the details, and the `message` is that of the reason: the model receives it.
 *
 * @example
 * sandbox.run(program, host).pipe(Effect.catchReason("ProgramError", "LimitExceeded", () => Effect.succeed(undefined)))
 */
export class ProgramError extends PrintableError.tagged("ProgramError")<{
  readonly reason: Reason
}> {
  constructor(reason: Reason) {
    super({ reason, message: reason.message })
  }
}

/**
 * A call of a tool failed: the program can catch it as an `Error` with this message.
 *
 * @example
 * const refused = Effect.fail(new CallError({ message: "There is no tool \"sned\"" }))
 */
export class CallError extends PrintableError.tagged("CallError") {}
