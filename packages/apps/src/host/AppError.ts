/**
 * Why a host cannot show the page of a tool.
 */
import * as PrintableError from "@skein/protocol/PrintableError"

/** The tool has no page: its `_meta.ui` has no `resourceUri` of `ui://`. */
export class NoPage extends PrintableError.tagged("NoPage") {}

/** The contents of the `ui://` resource are not a page: another MIME type, no text, or malformed base64. */
export class InvalidPage extends PrintableError.tagged("InvalidPage") {}

/** The page has more than 4,194,304 characters. */
export class PageTooLarge extends PrintableError.tagged("PageTooLarge") {}

/** The sandbox has the origin of the host, where the page could reach the host. */
export class SameOrigin extends PrintableError.tagged("SameOrigin") {}

/** The sandbox did not report that it is ready within `readyTimeout`. */
export class SandboxTimeout extends PrintableError.tagged("SandboxTimeout") {}

/** Why a page cannot be shown. */
export type Reason = NoPage | InvalidPage | PageTooLarge | SameOrigin | SandboxTimeout

/**
 * The page of a tool cannot be shown. The `reason` has the details, and the `message` is that of the reason. Show the
 * content of the result instead.
 *
 * @example
 * AppHost.open(client, tool).pipe(Effect.catchReason("AppError", "NoPage", () => showContent))
 */
export class AppError extends PrintableError.tagged("AppError")<{ readonly reason: Reason }> {
  constructor(reason: Reason) {
    super({ reason, message: reason.message })
  }
}
