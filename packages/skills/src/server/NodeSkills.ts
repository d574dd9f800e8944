/**
 * The skills in a folder of the file system, on Node. `Skill` says what skills are.
 *
 * Each folder with a `SKILL.md` is a skill, at any depth: `skills/acme/refunds/SKILL.md` is
 * `skill://acme/refunds/SKILL.md`. All files below it belong to it. Files outside of skills are not served, nor are files
 * and folders whose names begin with a dot, such as `.env` and `.git`. More than 10,000 files and folders, those outside of
 * skills included, fail the layer with `LimitExceeded`.
 *
 * The content is read when the layer is built, and kept in memory, so that the listed digests are always those of the
 * served files. With `watchInterval` the folder is read again after a change.
 *
 * @example
 * const Server = McpServer.layer({ name: "shop", version: "1.0.0" }, NodeSkills.layer("skills", { watchInterval: "1 second" }))
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { fileURLToPath } from "node:url"
import { Catalog } from "@skein/server/Catalog"
import type { DefinitionError } from "@skein/server/DefinitionError"
import { type FolderState, read, walk } from "./nodeFolder.ts"
import { Publication } from "./publication.ts"
import { serve } from "./skillFiles.ts"
import { skillBounds } from "../shared/skillBounds.ts"
import type * as Skill from "./Skill.ts"
import type { SkillError } from "./SkillError.ts"

/** The bounds of a folder. */
export interface Limits extends Skill.Limits {
  /**
   * How many bytes all skills together have at most: 64 MiB by default. More bytes fail the layer with `LimitExceeded`.
   * Raise it for a large library of skills: they are kept in memory.
   */
  readonly maxTotalBytes?: number | undefined
}

/** The options of a folder. */
export interface Options extends Skill.Placement {
  /**
   * How often the folder is checked for changes: never by default. Changed skills replace those before, and clients are
   * notified of changed resources. A folder that has become invalid is logged, and the skills before stay.
   */
  readonly watchInterval?: Duration.Input | undefined
  /**
   * Selects files and folders by their path within the folder, with slashes: all by default. A folder that is left out
   * is not read.
   *
   * @example
   * include: (path) => !path.endsWith(".test.py")
   */
  readonly include?: ((path: string) => boolean) | undefined
  /** The bounds of a skill, and of all of them together. */
  readonly limits?: Limits | undefined
}

/**
 * Serves the skills in a folder. Fails with
 * - `SkillError`: `FolderUnreadable`, `OutsideFolder` for a symbolic link that leads out of the folder, `InvalidSkill`,
 *   `InvalidPath`, `LimitExceeded`, or `SeparatelyNested` if a skill is inside of one that another layer serves;
 * - `DefinitionError`: `DuplicateName` if a URI exists already.
 *
 * @example
 * NodeSkills.layer(new URL("./skills", import.meta.url), { prefix: "acme" })
 */
export const layer = (
  folder: string | URL,
  options: Options = {}
): Layer.Layer<never, SkillError | DefinitionError, Catalog> => {
  const { cacheScope, include = () => true, limits = {}, prefix, ttlMs, watchInterval } = options
  const { maxTotalBytes = 64 * 1024 * 1024 } = limits
  const path = folder instanceof URL ? fileURLToPath(folder) : folder
  const settings = { prefix, include, maxTotalBytes }
  const bounds = skillBounds(limits)
  return Layer.effectDiscard(Effect.gen(function*() {
    const publication = new Publication(yield* Catalog)
    const publish = (state: FolderState) =>
      Effect.gen(function*() {
        const contents = yield* read(path, state, settings)
        const skills = yield* Effect.forEach(contents, (content) => serve(content, bounds, { ttlMs, cacheScope }))
        yield* publication.set(skills)
      })
    yield* Effect.addFinalizer(() => publication.clear)
    const first = yield* walk(path, settings)
    yield* publish(first)
    if (watchInterval === undefined) return
    let seen = first.fingerprint
    let warned = ""
    const check = Effect.gen(function*() {
      const state = yield* walk(path, settings)
      if (state.fingerprint === seen) return
      yield* publish(state)
      seen = state.fingerprint
      warned = ""
      yield* Effect.logInfo(`the skills in ${path} were read again`)
    })
    const watching = Effect.catch(check, ({ message }) =>
      Effect.suspend(() => {
        if (message === warned) return Effect.void
        warned = message
        return Effect.logWarning(`the skills in ${path} were not read again: ${message}`)
      }))
    yield* Effect.forkScoped(Effect.forever(Effect.delay(watching, watchInterval)))
  }))
}
