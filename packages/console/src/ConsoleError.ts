/**
 * Why a console was not started.
 */
import * as PrintableError from "@skein/protocol/PrintableError"

/** Any client that reaches the address could use the console: `host` is not loopback, and `protect` is missing. */
export class Unprotected extends PrintableError.tagged("Unprotected")<{
  readonly host: string
}> {}

/**
 * A console was not started. The `reason` has the details.
 *
 * @example
 * Console.layer({ host: "0.0.0.0" }).pipe(
 *   Layer.catchTag("ConsoleError", ({ message }) => Layer.effectDiscard(Effect.logError(message)))
 * )
 */
export class ConsoleError extends PrintableError.withReason("ConsoleError")<{
  readonly reason: Unprotected
}> {}
