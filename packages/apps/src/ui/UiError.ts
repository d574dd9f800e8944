/**
 * Why a tree of components is not shown: see `Ui`, `UiApp` and `GeneratedUi`. The model receives the message.
 */
import * as PrintableError from "@skein/protocol/PrintableError"

/** The tree is deeper than `maxDepth`, or has more components, cells or characters than its bounds allow. */
export class TreeTooLarge extends PrintableError.tagged("TreeTooLarge") {}

/** A component does not match the schema, or two inputs have the same name. The message has its path. */
export class InvalidTree extends PrintableError.tagged("InvalidTree") {}

/** A button names a tool that it may not call. The message has its path. */
export class ToolNotAllowed extends PrintableError.tagged("ToolNotAllowed") {}

/** Why a tree is not shown. */
export type Reason = TreeTooLarge | InvalidTree | ToolNotAllowed

/**
 * A tree of components is not shown. The `reason` has the details, and the `message` is that of the reason.
 *
 * @example
 * const isTooLarge = ({ reason }: UiError) => reason._tag === "TreeTooLarge"
 */
export class UiError extends PrintableError.tagged("UiError")<{ readonly reason: Reason }> {
  constructor(reason: Reason) {
    super({ reason, message: reason.message })
  }
}
