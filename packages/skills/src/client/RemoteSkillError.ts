/**
 * Why a skill of a server cannot be used.
 */
import * as PrintableError from "@skein/protocol/PrintableError"

/** The entry of the skill violates the specification, so that its files cannot be verified. Nothing was read. */
export class InvalidEntry extends PrintableError.tagged("InvalidEntry") {}

/** The skill, or what was read of it, exceeds a bound of this host. */
export class LimitExceeded extends PrintableError.tagged("LimitExceeded")<{
  /** The option with the bound, or `"loadedSkills"` for the fixed number of skills that a toolkit loads. */
  readonly limit: "maxFiles" | "maxBytes" | "maxChars" | "loadedSkills"
}> {}

/** The skill has no digests (`"dynamic"`), and the option `allowDynamic` is off. Nothing was read. */
export class NotVerifiable extends PrintableError.tagged("NotVerifiable") {}

/** The number of bytes of a file is not the one of its entry: the skill has changed, or was tampered with. */
export class SizeMismatch extends PrintableError.tagged("SizeMismatch")<{
  /** The URI of the file. */
  readonly file: string
}> {}

/** The digest of a file is not the one of its entry: the skill has changed, or was tampered with. */
export class DigestMismatch extends PrintableError.tagged("DigestMismatch")<{
  /** The URI of the file. */
  readonly file: string
}> {}

/** The frontmatter of `SKILL.md` cannot be read. */
export class InvalidMarkdown extends PrintableError.tagged("InvalidMarkdown") {}

/** The frontmatter of `SKILL.md` is not that of the entry. */
export class FrontmatterMismatch extends PrintableError.tagged("FrontmatterMismatch")<{
  /** The members that differ. */
  readonly members: ReadonlyArray<string>
}> {}

/** The skill has no such file: it is not in the entry from which the skill was loaded. Nothing was read. */
export class UnlistedFile extends PrintableError.tagged("UnlistedFile")<{
  /** The path or the URI that was asked for. */
  readonly file: string
}> {}

/** The server answered with contents that are not those of the file. */
export class InvalidContent extends PrintableError.tagged("InvalidContent")<{
  /** The URI of the file. */
  readonly file: string
}> {}

/** No skill has this name or URI, or it is not loaded yet. */
export class SkillNotFound extends PrintableError.tagged("SkillNotFound") {}

/** Why a skill cannot be used. */
export type Reason =
  | InvalidEntry
  | LimitExceeded
  | NotVerifiable
  | SizeMismatch
  | DigestMismatch
  | InvalidMarkdown
  | FrontmatterMismatch
  | UnlistedFile
  | InvalidContent
  | SkillNotFound

/**
 * A skill cannot be used. The `reason` is a tagged error with the details, for `Effect.catchReason`. The `message` is
 * that of the reason. Failures of requests are `ClientError`s.
 *
 * After `SizeMismatch`, `DigestMismatch`, `FrontmatterMismatch` or `UnlistedFile` the skill may have changed since its
 * entry was fetched: get a new entry (`RemoteSkill.get`, with `cache: "refresh"`), and approve it again.
 *
 * @example
 * RemoteSkill.load(client, entry).pipe(
 *   Effect.catchReason("RemoteSkillError", "DigestMismatch", ({ file }) => Effect.logWarning("refused", file))
 * )
 */
export class RemoteSkillError extends PrintableError.withReason("RemoteSkillError")<{
  readonly reason: Reason
  /** The URI of the skill. */
  readonly skill: string
}> {}
