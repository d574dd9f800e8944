/**
 * Why skills cannot be served.
 */
import * as PrintableError from "@skein/protocol/PrintableError"

/** A `SKILL.md` is invalid: its frontmatter is missing or malformed, or its name is not that of its folder. */
export class InvalidSkill extends PrintableError.tagged("InvalidSkill")<{
  /** The path of the skill. */
  readonly skill: string
}> {}

/** A path has no form in a URI, or leads out of its folder. */
export class InvalidPath extends PrintableError.tagged("InvalidPath")<{
  readonly path: string
}> {}

/**
 * A skill is inside the folder of another one that was added separately. The list of files of the outer skill would be
 * incomplete ("Completeness extends to nested skills", SEP-2640). Add both with one call.
 */
export class SeparatelyNested extends PrintableError.tagged("SeparatelyNested")<{
  /** The URI of the inner skill. */
  readonly uri: string
}> {}

/** A skill or a folder exceeds a bound. */
export class LimitExceeded extends PrintableError.tagged("LimitExceeded")<{
  /** The option with the bound, or `"depth"` or `"totalFiles"` for the fixed bounds of a folder. */
  readonly limit: "maxFiles" | "maxBytes" | "maxTotalBytes" | "totalFiles" | "depth"
}> {}

/** A folder, or a file in it, cannot be read. */
export class FolderUnreadable extends PrintableError.tagged("FolderUnreadable")<{
  readonly path: string
  readonly cause?: unknown
}> {}

/** A symbolic link leads out of the folder. */
export class OutsideFolder extends PrintableError.tagged("OutsideFolder")<{
  /** The path of the link. */
  readonly path: string
}> {}

/** Why skills cannot be served. */
export type Reason = InvalidSkill | InvalidPath | SeparatelyNested | LimitExceeded | FolderUnreadable | OutsideFolder

/**
 * Skills cannot be served. It fails the layer. The `reason` has the details, and the `message` is that of the reason.
 *
 * @example
 * const skills = NodeSkills.layer("skills").pipe(
 *   Layer.catchTag("SkillError", ({ message }) => Layer.effectDiscard(Effect.logError(message)))
 * )
 */
export class SkillError extends PrintableError.withReason("SkillError")<{
  readonly reason: Reason
}> {}
